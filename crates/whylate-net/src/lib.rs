//! Request and reply over ports: client, reflector, accounting.
