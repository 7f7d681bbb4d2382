import { createCipheriv, createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Id, idOfBytes } from '../src/format/id.js'
import { workFolder } from './load.js'

export const sizes = {
  '1k': 2 ** 10,
  '64k': 2 ** 16,
  '1m': 2 ** 20,
  '100m': 100 * 2 ** 20,
  '1g': 2 ** 30,
} as const
export type SizeName = keyof typeof sizes

/** A file of bytes that no one can compress, under its id. */
export interface BenchObject {
  readonly name: SizeName | 'band'
  readonly id: Id
  readonly path: string
  readonly sizeBytes: number
  readonly digest: Uint8Array
  /** Path at a gateway; absent: its id. */
  readonly gatewayPath?: string
}

const pieceBytes = 2 ** 21

/** Where servers of files find the objects by their ids. */
export function objectsFolder(): string {
  const folder = join(workFolder, 'objects')
  mkdirSync(folder, { recursive: true })
  return folder
}

/** The object of this size; made on first need. The same bytes each time. */
export function benchObject(name: SizeName): BenchObject {
  const folder = objectsFolder()
  const id = idOfBytes(createHash('sha256').update(`bench ${name}`).digest())
  const path = join(folder, id)
  const sizeBytes = sizes[name]
  const digestPath = `${path}.digest`
  if (!existsSync(digestPath) || statSync(path).size !== sizeBytes) {
    const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, name), Buffer.alloc(16))
    const hash = createHash('sha256')
    const file = openSync(path, 'w')
    for (let at = 0; at < sizeBytes; at += pieceBytes) {
      const piece = cipher.update(Buffer.alloc(Math.min(pieceBytes, sizeBytes - at)))
      hash.update(piece)
      writeSync(file, piece)
    }
    closeSync(file)
    writeFileSync(digestPath, hash.digest())
  }
  return { name, id, path, sizeBytes, digest: readFileSync(digestPath) }
}
