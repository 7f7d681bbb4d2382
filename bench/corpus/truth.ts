import { createCipheriv } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { workFolder } from '../kit/folders.js'

/** Bytes that cannot be compressed. Every content of the benches is a window of them. */
export const truthBytes = 64 * 2 ** 20

let known: Buffer | undefined

/** The file of the truth: made on first need, the same bytes each time. */
export function truthPath(): string {
  const path = join(workFolder, 'truth')
  if (!existsSync(path) || statSync(path).size !== truthBytes) {
    mkdirSync(workFolder, { recursive: true })
    const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 'truth'), Buffer.alloc(16))
    writeFileSync(`${path}.draft`, cipher.update(Buffer.alloc(truthBytes)))
    renameSync(`${path}.draft`, path)
  }
  return path
}

/** `count` bytes of it from `start`; after its end it continues at its beginning. */
export function* truthFrom(start: number, count: number): Generator<Buffer> {
  known ??= readFileSync(truthPath())
  for (let at = start % truthBytes, left = count; left > 0; at = 0) {
    const piece = known.subarray(at, Math.min(truthBytes, at + left))
    left -= piece.length
    yield piece
  }
}
