# Usage: memcached.py SECONDS. Runs sixteen clients of memcached. A read must return the value that the client has written last, or nothing if the value was evicted.
import random
import socket
import sys
import threading
import time

operations = [0] * 16
faults = []


def client(number):
    rng = random.Random(number)
    conn = socket.create_connection(("127.0.0.1", 11211))
    lines = conn.makefile("rb")
    written = {}
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        key = b"%d-%d" % (number, rng.randrange(500))
        if rng.random() < 0.5:
            value = rng.randbytes(rng.randrange(1, 20000))
            conn.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
            answer = lines.readline()
            if answer != b"STORED\r\n":
                faults.append(answer)
            written[key] = value
        else:
            conn.sendall(b"get %s\r\n" % key)
            answer = lines.readline()
            if answer.startswith(b"VALUE"):
                value = lines.read(int(answer.split()[3]) + 2)[:-2]
                if value != written.get(key) or lines.readline() != b"END\r\n":
                    faults.append(key)
            elif answer != b"END\r\n":
                faults.append(answer)
        operations[number] += 1


threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sum(operations), "operations")
if faults or not all(operations):
    sys.exit("%d faults, first %r" % (len(faults), faults[:3]))
