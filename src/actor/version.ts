import { readFileSync } from 'node:fs'

let version: string | undefined

/** The version of this program, from package.json. */
export function programVersion(): string {
  if (version === undefined) {
    const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
    version = (JSON.parse(text) as { version: string }).version
  }
  return version
}
