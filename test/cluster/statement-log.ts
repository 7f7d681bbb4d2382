/**
 * For Node's `--import`: what the program, and no test, sends to PostgreSQL is written to TEST_STATEMENTS_FILE, each statement of
 * a thread once, as a line of JSON.
 */
import { appendFileSync } from 'node:fs'
import { Client } from 'pg'

const file = process.env.TEST_STATEMENTS_FILE
const seen = new Set<string>()
const { query } = Client.prototype
/** Frames of the driver, of Node, and of what the program calls it by. */
const between = /node_modules|node:|postgres-session|statement-log/

function note(given: unknown): void {
  const text = typeof given === 'string' ? given : (given as { readonly text?: unknown }).text
  if (typeof text !== 'string' || seen.has(text) || file === undefined) return
  const frames = (new Error().stack ?? '').split('\n').slice(1)
  if (frames.find((frame) => !between.test(frame))?.includes('/dist/test/') === true) return
  seen.add(text)
  appendFileSync(file, `${JSON.stringify(text)}\n`)
}

Client.prototype.query = function (this: Client, ...words: unknown[]) {
  note(words[0])
  return (query as (...given: unknown[]) => unknown).apply(this, words)
} as typeof query
