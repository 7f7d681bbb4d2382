# Reads a CDB64 file by the text of its format; shares no code with the program. Prints each record of the file as
# "key value" in hex, in the order of the keys asked for on standard input; "-" for a key that is not there.
import struct
import sys

data = open(sys.argv[1], 'rb').read()


def number(at):
    return struct.unpack_from('<Q', data, at)[0]


def find(key):
    h = 5381
    for byte in key:
        h = ((h * 33) & (2**64 - 1)) ^ byte
    table, slots = number((h & 255) * 16), number((h & 255) * 16 + 8)
    for step in range(slots):
        slot = table + ((h >> 8) + step) % slots * 16
        at = number(slot + 8)
        if at == 0:
            return None
        if number(slot) == h:
            key_length, value_length = number(at), number(at + 8)
            if data[at + 16 : at + 16 + key_length] == key:
                return data[at + 16 + key_length : at + 16 + key_length + value_length]
    return None


for line in sys.stdin:
    value = find(bytes.fromhex(line.strip()))
    print('-' if value is None else value.hex())
