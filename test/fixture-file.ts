import { readdirSync, readFileSync } from 'node:fs'

const folder = new URL('../../test/fixture/', import.meta.url)

/** The bytes of a file in test/fixture/. */
export function fixture(name: string): Uint8Array {
  return readFileSync(new URL(name, folder))
}

/** The JSON in a file in test/fixture/. */
export function fixtureJson<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
}

/** The JSON values in a file of one per line. */
export function fixtureLines<T>(name: string): T[] {
  const lines = readFileSync(new URL(name, folder), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line))
}

/** The names of the files in a folder of test/fixture/. */
export function fixtureNames(name: string): string[] {
  return readdirSync(new URL(name, folder)).sort()
}

export const fromBase64url = (text: string): Uint8Array => Buffer.from(text, 'base64url')
export const fromHex = (text: string): Uint8Array => Buffer.from(text, 'hex')
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
export const toBase64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The value, failing the test where it is a refusal. */
export function sound<T>(value: T): Exclude<T, { readonly refused: string } | 'more' | undefined> {
  if (value === undefined || value === 'more') throw new Error(`got ${String(value)}`)
  if (typeof value === 'object' && value !== null && 'refused' in value)
    throw new Error(JSON.stringify(value))
  return value as Exclude<T, { readonly refused: string } | 'more' | undefined>
}
