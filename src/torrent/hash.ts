import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { hashBlocks, openPass } from '../../native/digest/digest.js'
import { blockBytes, defaultPieceBytes, type HashedFile } from './torrent.js'
import { pieceRoot } from './tree.js'

/** One pass over a file for all three digests: each byte is read once, and hashed while the processor's cache holds it. */

/** Bytes of one read; there are two buffers: one is filled while the other is hashed. */
const readBytes = 1 << 20

/** The root hash of one piece from the hashes of its 16 KiB blocks: what the piece layer of the file has for it. */
export function rootOfBlocks(blocks: Uint8Array, fileBytes: number, pieceBytes: number): Uint8Array {
  // A file of one piece has a tree just wide enough; in a longer one each piece has a full one.
  const width = Math.ceil(Math.min(fileBytes, pieceBytes) / blockBytes)
  return pieceRoot(blocks, Math.ceil(Math.log2(width)))
}

/** The same from the bytes of the piece, without padding. */
export function hashPiece(piece: Uint8Array, fileBytes: number, pieceBytes: number): Uint8Array {
  return rootOfBlocks(hashBlocks(piece, blockBytes), fileBytes, pieceBytes)
}

/**
 * Reads a file to its end, for `hybridTorrent`. Other work of the thread gets a turn each MiB. Rejects with
 * the error of the file system, and where the file changes its size meanwhile.
 */
export async function hashBandFile(
  folder: string,
  name: string,
  pieceBytes = defaultPieceBytes,
): Promise<HashedFile> {
  const file = await open(join(folder, name))
  try {
    return await hashOpen(file, name, pieceBytes)
  } finally {
    await file.close()
  }
}

async function hashOpen(file: FileHandle, name: string, pieceBytes: number): Promise<HashedFile> {
  const { size: sizeBytes } = await file.stat()
  const pass = openPass({ blockBytes, pieceBytes })
  const buffers = [Buffer.allocUnsafeSlow(readBytes), Buffer.allocUnsafeSlow(readBytes)] as const
  let reading = fill(file, buffers[0], 0, sizeBytes)
  for (let at = 0, turn = 1; at < sizeBytes; at += readBytes, turn ^= 1) {
    const bytes = await reading
    reading = fill(file, buffers[turn]!, at + readBytes, sizeBytes)
    // Not unhandled: a rejection is thrown where `reading` is awaited, in the next turn of the loop or after it.
    reading.catch(() => 'met when it is awaited')
    pass.update(bytes)
  }
  await reading
  const { whole: sha256, blocks, pieces: sha1s } = pass.finish()
  return { name, sizeBytes, sha256, layer: rootOfBlocks(blocks, sizeBytes, pieceBytes), sha1s }
}

/** The bytes from `at`, as many as the buffer holds or the file has left. */
async function fill(file: FileHandle, buffer: Buffer, at: number, sizeBytes: number): Promise<Buffer> {
  const wanted = Math.max(0, Math.min(buffer.length, sizeBytes - at))
  let had = 0
  while (had < wanted) {
    const { bytesRead } = await file.read(buffer, had, wanted - had, at + had)
    if (bytesRead === 0) throw new Error('a file became shorter while it was read')
    had += bytesRead
  }
  return buffer.subarray(0, wanted)
}
