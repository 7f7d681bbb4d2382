import { ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { fc } from '../property.js'

/** Inputs tried for each parser: a second or less. */
const runs = 3000

/** Set, each parser is tried for so long, and inputs that met with an answer of a new kind join the corpus. */
const seconds = Number(process.env.FUZZ_SECONDS ?? 0)

/** Inputs kept for each parser. */
const keptMax = 60
const inputMax = 4096

t.setTimeout(1_200_000 + seconds * 100_000)

const corpus = fileURLToPath(new URL('../../../test/fixture/corpus/', import.meta.url))

/**
 * Feeds changed inputs to a parser: it must come back, and with a value or a refusal in words. What is in the corpus is tried
 * first, always.
 */
export function fuzz<I>(name: string, inputs: fc.Arbitrary<I>, parse: (input: I) => unknown): void {
  t.test(`${name}: any input gives a value or a refusal`, async (t) => {
    const kept = readCorpus<I>(name)
    const kinds = new Set<string>()
    let refusals = 0
    const look = (input: I): string => {
      const answer = parse(input)
      if (answer === undefined || answer === 'more' || isRefusal(answer)) refusals++
      if (isRefusal(answer)) ok(answer.message.length > 0 && answer.message.length < 400, answer.message)
      return kindOf(answer)
    }
    for (const input of kept) kinds.add(look(input))
    const bounds =
      seconds > 0 ? { numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: seconds * 1000 } : { numRuns: runs }
    let tried = 0
    fc.assert(
      fc.property(inputs, (input) => {
        tried += 1
        const kind = look(input)
        if (seconds === 0 || kinds.has(kind) || kept.length >= keptMax) return
        kinds.add(kind)
        if (textOf(input).length <= inputMax) kept.push(input)
      }),
      bounds,
    )
    if (seconds > 0) writeCorpus(name, kept)
    t.ok(refusals > 0, `${refusals} of ${tried} refused, ${kept.length} kept`)
  })
}

/** Answers that differ in numbers and ids only are of one kind. */
function kindOf(answer: unknown): string {
  if (isRefusal(answer)) return `${answer.refused}: ${answer.message.replace(/[\w-]{20,}|\d+|"[^"]*"/g, '#')}`
  return answer === undefined ? 'nothing' : typeof answer === 'string' ? answer : 'a value'
}

const fileOf = (name: string): string => `${corpus}${name.replace(/\W+/g, '-')}.json`

function textOf(input: unknown): string {
  const write = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') }
    return Array.isArray(value) ? value.map(write) : value
  }
  return JSON.stringify(write(input))
}

function readCorpus<I>(name: string): I[] {
  if (!existsSync(fileOf(name))) return []
  const isBytes = (value: unknown): value is { base64: string } =>
    typeof value === 'object' && value !== null && 'base64' in value
  const revive = (value: unknown): unknown =>
    isBytes(value) ? new Uint8Array(Buffer.from(value.base64, 'base64')) : value
  return JSON.parse(readFileSync(fileOf(name), 'utf8'), (_, value) => revive(value)) as I[]
}

function writeCorpus(name: string, inputs: readonly unknown[]): void {
  mkdirSync(corpus, { recursive: true })
  writeFileSync(fileOf(name), `[\n${inputs.map(textOf).join(',\n')}\n]\n`)
}
