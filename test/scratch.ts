import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

/** A new folder among the temporary files of the machine; it goes when this process ends. */
export function scratch(name: string): string {
  if (made.length === 0) {
    process.once('exit', () => {
      for (const path of made) rmSync(path, { recursive: true, force: true })
    })
  }
  const path = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  made.push(path)
  return path
}
