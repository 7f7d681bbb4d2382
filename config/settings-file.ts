import { readFileSync } from 'node:fs'

/** Bytes of the file at most. */
const fileMaxBytes = 1_048_576

const line = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/

/**
 * Reads settings out of a file of lines `NAME=value`, as EnvironmentFile of systemd and `env_file` of Docker have them. A
 * value may stand in double or single quotes; empty lines and those that begin with `#` or `;` are comments. The errors name
 * the line and never show a value.
 */
export function readSettingsFile(
  path: string,
): { readonly values: Readonly<Record<string, string>> } | { readonly wrong: string } {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    return { wrong: `SETTINGS_FILE: ${(error as Error).message}` }
  }
  if (text.length > fileMaxBytes)
    return { wrong: `SETTINGS_FILE: ${path} is larger than ${fileMaxBytes} bytes` }
  const values: Record<string, string> = {}
  for (const [at, raw] of text.split('\n').entries()) {
    const trimmed = raw.trim()
    if (trimmed === '' || /^[#;]/.test(trimmed)) continue
    const [, name, value] = line.exec(trimmed) ?? []
    if (name === undefined || value === undefined)
      return { wrong: `SETTINGS_FILE: line ${at + 1} is not NAME=value` }
    values[name] = unquoted(value)
  }
  return { values }
}

function unquoted(text: string): string {
  const [, double, single] = /^(?:"(.*)"|'(.*)')$/.exec(text) ?? []
  return double ?? single ?? text
}
