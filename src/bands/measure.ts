import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { BandFile, Measure } from './publication.js'

const pieceBytes = 1024 * 1024

/** Size and SHA-256 of each file, read piece by piece. */
export const measureDigests: Measure = async (folder, names) => {
  const files: BandFile[] = []
  const piece = Buffer.allocUnsafe(pieceBytes)
  for (const name of names) files.push(await digestOf(folder, name, piece))
  return { files }
}

async function digestOf(folder: string, name: string, piece: Buffer): Promise<BandFile> {
  const file = await open(join(folder, name), 'r')
  try {
    const hash = createHash('sha256')
    let size = 0
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, pieceBytes, size)
      if (bytesRead === 0) return { name, size, sha256: hash.digest('hex') }
      hash.update(piece.subarray(0, bytesRead))
      size += bytesRead
    }
  } finally {
    await file.close()
  }
}
