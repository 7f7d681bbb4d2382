import { systemClock } from '../src/actor/clock.js'
import type { ChainIndex } from '../src/catalog/index-reader.js'
import { Answerer } from '../src/query/answer.js'
import { noHeaders } from '../src/query/headers.js'
import { queryLimits } from '../src/query/limits.js'
import { document, type Question } from './index-questions.js'
import type { SqliteReader } from './index-sqlite-reader.js'

/** Each side in turn is asked all questions of a kind so many times. */
const rounds = 3
/** Before that it is asked so many of them, or for so long: what it runs is compiled, what it reads is in memory. */
const warm = { asks: 3000, ms: 2000 }
/** A side that takes seconds for an answer is asked fewer questions. */
const roundMs = 8000

/** The given share of all is not above this. */
function percentile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** Milliseconds of the processor, all threads: the clock's would measure who else uses the machine. */
function processorMs(act: () => void): number {
  const before = process.cpuUsage()
  act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function clockMs(act: () => void): number {
  const before = systemClock.monotonic()
  act()
  return systemClock.monotonic() - before
}

const cell = (text: string): string => text.padStart(9)
const figure = (ms: number): string => cell(ms < 10 ? ms.toFixed(3) : ms.toFixed(1))

type Side = (question: Question) => string

/** The bytes that go over the wire. */
const sent = (text: string): void => {
  Buffer.from(text)
}

function warmUp(questions: readonly Question[], answer: Side): void {
  for (let asked = 0, end = systemClock.monotonic() + warm.ms; asked < warm.asks; ) {
    for (const question of questions) {
      sent(answer(question))
      asked += 1
      if (systemClock.monotonic() > end) return
    }
  }
}

/** Asks the index and SQLite the same questions, and compares what they say to the letter. */
export class Comparison {
  readonly #answerer: Answerer
  readonly #ms: (act: () => void) => number

  constructor(
    index: ChainIndex,
    private readonly sqlite: SqliteReader | undefined,
    byClock: boolean,
    private readonly say: (line: string) => void,
  ) {
    const limits = { ...queryLimits, timeMs: 60_000, stepsMax: Number.MAX_SAFE_INTEGER }
    this.#answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits })
    this.#ms = byClock ? clockMs : processorMs
  }

  head(): void {
    const sides = ['', 'p50', 'p99', 'SQL', 'p99', 'SQL+gql', 'p99'].slice(1)
    const ratios = ['SQL p50', 'p99', 'gql p50', 'p99']
    this.say(`${'ms per answer'.padEnd(26)}${'rows'.padStart(6)}${[...sides, ...ratios].map(cell).join('')}`)
  }

  /** From the query's text to the answer's, as over the wire. */
  readonly ask = (variables: Record<string, unknown>): string => {
    const request = { query: document, operationName: null, variables }
    const answer = this.#answerer.answer(request, this.#answerer.effort())
    if (answer instanceof Promise) throw new Error('nothing of this should have to wait')
    return answer.text
  }

  run(name: string, questions: readonly Question[]): void {
    const { sqlite } = this
    const sides: Side[] = [({ variables }) => this.ask(variables)]
    if (sqlite !== undefined) {
      sides.push(
        (question) => sqlite.answer(question.sqlite),
        (question) => sqlite.answerQuery(document, question.variables, question.sqlite),
      )
    }
    const rows = this.#compared(name, questions, sides)
    for (const side of sides) warmUp(questions, side)
    const times = sides.map((): number[] => [])
    for (let round = 0; round < rounds; round += 1) {
      for (const [at, answer] of sides.entries()) {
        const end = systemClock.monotonic() + roundMs
        for (const question of questions) {
          times[at]?.push(this.#ms(() => sent(answer(question))))
          if (systemClock.monotonic() > end) break
        }
      }
    }
    const figures = times.map((side) => [percentile(side, 0.5), percentile(side, 0.99)])
    const [ours = [], ...theirs] = figures
    const ratios = theirs.flatMap((side) =>
      side.map((ms, at) => cell(`${(ms / (ours[at] ?? 1)).toFixed(1)}x`)),
    )
    const cells = [...figures.flat().map(figure), ...ratios].join('')
    this.say(`${name.padEnd(26)}${rows.toFixed(1).padStart(6)}${cells}`)
  }

  /** Number of rows that a question has for an answer. Throws where one side says another thing than the other. */
  #compared(name: string, questions: readonly Question[], sides: readonly Side[]): number {
    const end = systemClock.monotonic() + roundMs
    let [rows, asked] = [0, 0]
    for (const question of questions) {
      if (systemClock.monotonic() > end && asked > 0) break
      asked += 1
      const [ours = '', ...others] = sides.map((answer) => answer(question))
      rows += ours.split('"cursor":').length - 1
      const other = others.find((text) => text !== ours)
      if (other !== undefined) throw new Error(`${name}: the answers differ\n${ours}\n${other}`)
    }
    return rows / asked
  }
}
