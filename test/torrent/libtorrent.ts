import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Debian's: other Pythons on the machine do not find libtorrent. */
export const python = '/usr/bin/python3'

/** A script of this folder as it lies in the source tree. */
export function script(name: string): string {
  return fileURLToPath(new URL(`../../../test/torrent/${name}`, import.meta.url))
}

/** Whether libtorrent's Python module is on this machine; the word for skipping where it is not. */
export function withoutLibtorrent(): string | false {
  try {
    execFileSync(python, ['-c', 'import libtorrent'], { stdio: 'ignore' })
    return false
  } catch {
    return 'python3-libtorrent is not installed'
  }
}

/** Whether aria2 is on this machine, likewise. */
export function withoutAria(): string | false {
  try {
    execFileSync('aria2c', ['--version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'aria2c is not installed'
  }
}

/** A byte sequence that is the same in each run. */
export function steadyBytes(seed: string, length: number): Buffer {
  const blocks: Buffer[] = []
  for (let index = 0; index * 32 < length; index += 1) {
    blocks.push(createHash('sha256').update(`${seed}:${index}`).digest())
  }
  return Buffer.concat(blocks).subarray(0, length)
}

/** Puts a folder of files together; returns its path. */
export function plantFiles(folder: string, files: Readonly<Record<string, Uint8Array>>): string {
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
  return folder
}

/** Files as a root-transaction band has them: a manifest and 256 partitions of some thousand bytes, `00` larger than a piece. */
export function bandOf257(): Record<string, Uint8Array> {
  const files: Record<string, Uint8Array> = { 'manifest.json': Buffer.from('{"version":1}') }
  for (let index = 0; index < 256; index += 1) {
    const name = `${index.toString(16).padStart(2, '0')}.cdb`
    files[name] = randomBytes(index === 0 ? 3_000_001 : 4096 + index * 37)
  }
  return files
}
