import { systemClock } from '../src/actor/clock.js'
import type { ChainIndex } from '../src/catalog/index-reader.js'
import { Answerer } from '../src/query/answer.js'
import { noHeaders } from '../src/query/headers.js'
import { queryLimits } from '../src/query/limits.js'
import { document, type Question } from './index-questions.js'
import type { SqliteReader } from './index-sqlite-reader.js'

/** Each side in turn is asked all questions of a kind so many times; the first time is not counted. */
const rounds = 4

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
    const sides: ((question: Question) => string)[] = [({ variables }) => this.ask(variables)]
    if (sqlite !== undefined) {
      sides.push(
        (question) => sqlite.answer(question.sqlite),
        (question) => sqlite.answerQuery(document, question.variables, question.sqlite),
      )
    }
    const times: number[][] = sides.map(() => [])
    let rows = 0
    for (let round = 0; round < rounds; round += 1) {
      const answers: string[] = []
      for (const [side, answer] of sides.entries()) {
        for (const [at, question] of questions.entries()) {
          let sent = Buffer.alloc(0)
          const ms = this.#ms(() => {
            sent = Buffer.from(answer(question))
          })
          if (round > 0) {
            times[side]?.push(ms)
            continue
          }
          const text = sent.toString()
          if (side === 0) {
            answers.push(text)
            rows += text.split('"cursor":').length - 1
          } else if (text !== answers[at]) {
            throw new Error(`${name}: the answers differ\n${answers[at]}\n${text}`)
          }
        }
      }
    }
    const figures = times.map((side) => [percentile(side, 0.5), percentile(side, 0.99)])
    const [ours = [], ...theirs] = figures
    const ratios = theirs.flatMap((side) =>
      side.map((ms, at) => cell(`${(ms / (ours[at] ?? 1)).toFixed(1)}x`)),
    )
    const cells = [...figures.flat().map(figure), ...ratios].join('')
    this.say(`${name.padEnd(26)}${(rows / questions.length).toFixed(1).padStart(6)}${cells}`)
  }
}
