"""Builds the hybrid torrent of a folder with libtorrent: python3 torrent_maker.py FOLDER PIECE_BYTES OUT. Prints both infohashes."""
import os
import sys

import libtorrent as lt

folder, piece_bytes, out = sys.argv[1:4]
files = lt.file_storage()
lt.add_files(files, folder)
torrent = lt.create_torrent(files, piece_size=int(piece_bytes), flags=0)
lt.set_piece_hashes(torrent, os.path.dirname(os.path.abspath(folder)))
with open(out, "wb") as made:
    made.write(lt.bencode(torrent.generate()))
hashes = lt.torrent_info(out).info_hashes()
print(hashes.v1, hashes.v2)
