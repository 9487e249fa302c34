# A server that knows nothing of whylate, and a client that asks it once a millisecond.
python3 -c '
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 4021))
while True:
    words, other = server.recvfrom(2048)
    server.sendto(words, other)
' & server=$!
sleep 1
python3 -c '
import socket, time
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect(("127.0.0.1", 4021))
while True:
    client.send(b"question")
    client.recv(2048)
    time.sleep(0.001)
' & client=$!
whylate watch udp:4021 --duration 400ms -o watch
kill "$server" "$client"
