import { systemClock } from '../../src/actor/clock.js'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import { noHeaders } from '../../src/query/headers.js'
import { Answerer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { quantile } from '../kit/numbers.js'
import type { Row } from '../report/results.js'
import { documentFor, type Question, variablesOf } from './questions.js'
import type { SqliteReader } from './sqlite-reader.js'

/** Each side in turn is asked all questions of a kind so many times. */
const rounds = 3
/** Before that it is asked so many of them, or for `warmMs`: what it runs is compiled, what it reads is in memory. */
const warmAsks = 1000
/** A side that takes seconds for an answer is asked fewer questions. */
const roundMs = 4000

/** Milliseconds of processor time of all threads: elapsed time would depend on other programs on the machine. */
function processorMs(act: () => void): number {
  const before = process.cpuUsage()
  act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

interface Side {
  readonly name: string
  readonly role: Row['role']
  readonly answer: (question: Question) => string
}

/** The bytes that go over the wire. */
const sent = (text: string): void => {
  Buffer.from(text)
}

/** Asks the index and SQLite the same questions, and compares the answers byte by byte. */
export class Comparison {
  readonly #answerer: Answerer
  readonly #sides: readonly Side[]

  constructor(index: ChainIndex, sqlite: SqliteReader | undefined) {
    // The limits that clients meet.
    this.#answerer = new Answerer({ index, headers: noHeaders, clock: systemClock, limits: queryLimits })
    this.#sides = [
      { name: 'index, GraphQL', role: 'ours', answer: this.ask },
      ...(sqlite === undefined ? [] : rivalsOf(sqlite)),
    ]
  }

  /** From the query's text to the answer's, as over the wire. */
  readonly ask = (question: Question): string => {
    const request = { query: documentFor(question), operationName: null, variables: variablesOf(question) }
    const answer = this.#answerer.answer(request, this.#answerer.effort())
    if (answer instanceof Promise) throw new Error('nothing of this should have to wait')
    return answer.text
  }

  /** Times of all sides for the same questions. Throws where answers differ. */
  run(questions: readonly Question[], warmMs: number): Row[] {
    const rowsEach = this.#compared(questions)
    for (const { answer } of this.#sides) warmUp(questions, answer, warmMs)
    const times = this.#sides.map((): number[] => [])
    for (let round = 0; round < rounds; round += 1) {
      for (const [at, { answer }] of this.#sides.entries()) {
        const end = systemClock.monotonic() + roundMs
        for (const question of questions) {
          times[at]?.push(processorMs(() => sent(answer(question))))
          if (systemClock.monotonic() > end) break
        }
      }
    }
    return this.#sides.map(({ name, role }, at) => {
      const side = times[at] ?? []
      const metrics = { p50Ms: quantile(side, 0.5), p99Ms: quantile(side, 0.99), rowsEach }
      return { candidate: name, role, metrics, rounds: [metrics.p50Ms] }
    })
  }

  /** Checks that all answers are equal; returns the number of rows. */
  #compared(questions: readonly Question[]): number {
    const end = systemClock.monotonic() + roundMs
    let [rows, answered] = [0, 0]
    for (const question of questions) {
      if (systemClock.monotonic() > end && answered > 0) break
      answered += 1
      const [ours = '', ...others] = this.#sides.map(({ answer }) => withPlainCursors(answer(question)))
      if (ours.includes('"errors"')) throw new Error(`the index refuses: ${ours.slice(0, 300)}`)
      rows += ours.split('"cursor":').length - 1
      const other = others.find((text) => text !== ours)
      if (other !== undefined) throw new Error(`the answers differ: ${difference(ours, other)}`)
    }
    return rows / answered
  }
}

/** The answer with each cursor as the list of the network, its first five members: only the index writes marks behind them. */
function withPlainCursors(answer: string): string {
  return answer.replace(/"cursor":"([\w-]+)"/g, (_, cursor: string) => {
    const list = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    return `"cursor":${JSON.stringify(list.slice(0, 5))}`
  })
}

function rivalsOf(sqlite: SqliteReader): Side[] {
  return [
    { name: 'SQLite', role: 'rival', answer: (question) => sqlite.answer(question) },
    {
      name: 'SQLite, GraphQL',
      role: 'rival',
      answer: (question) => sqlite.answerQuery(documentFor(question), variablesOf(question), question),
    },
  ]
}

/** The first difference of two texts, with what is around it. */
function difference(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  const around = (text: string): string => text.slice(Math.max(0, at - 60), at + 100)
  return `ours ...${around(one)}... theirs ...${around(other)}...`
}

function warmUp(questions: readonly Question[], answer: Side['answer'], warmMs: number): void {
  for (let answered = 0, end = systemClock.monotonic() + warmMs; answered < warmAsks; ) {
    for (const question of questions) {
      sent(answer(question))
      answered += 1
      if (systemClock.monotonic() > end) return
    }
  }
}
