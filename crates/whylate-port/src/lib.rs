//! Ports: frames and messages in and out.
