import { decodeBlock } from './block-record.js'
import type { IndexTables } from './index-tables.js'
import { refreshRuns } from './row-tables.js'
import { SegmentCheck } from './segment-check.js'
import { SetCheck } from './set-check.js'

/** What a check found. No problems: every entry of every table has its counterpart in the others. */
export interface CheckReport {
  readonly rows: number
  readonly postings: number
  readonly words: number
  readonly blocks: number
  /** Sentences for people, at most as many as were requested. */
  readonly problems: readonly string[]
}

/**
 * Checks the whole index against itself. One long read of one state, on the calling thread: for a tool, not
 * for a server. The keeper may go on meanwhile.
 */
export function checkIndex(tables: IndexTables, problemsMax = 20): CheckReport {
  return new Check(tables, problemsMax).run()
}

class Check {
  readonly #problems: string[] = []

  constructor(
    private readonly tables: IndexTables,
    private readonly problemsMax: number,
  ) {}

  run(): CheckReport {
    const { sets, segments, weave } = this.tables
    const expect = (right: boolean, problem: string): void => {
      if (!right && this.#problems.length < this.problemsMax) this.#problems.push(problem)
    }
    for (const set of sets.sets) {
      refreshRuns(set)
      // All files are opened at once: what is merged meanwhile is removed some seconds later.
      for (const runs of Object.values(set.runs)) runs.files()
    }
    const inSegments = new SegmentCheck(this.tables, segments.all(), expect)
    const inFiles = inSegments.run()
    const checked = sets.live().map((live) => new SetCheck(this.tables, live, expect).run())
    const sum = (part: keyof (typeof checked)[number]): number =>
      checked.reduce((all, set) => all + set[part], 0)
    const { current, frozen } = sets.state
    const unread = sets.sets[current === 0 ? 1 : 0].rows.count()
    expect(frozen !== undefined || unread === 0, `${unread} rows in tables that nobody reads`)
    const counts = sets.counts()
    expect(counts.rows === sum('rows'), `${counts.rows} rows in tables, of ${sum('rows')}`)
    expect(counts.pending === sum('pending'), `${counts.pending} pending rows, of ${sum('pending')}`)
    const placed = inSegments.placed + sum('placed')
    expect(weave.count() === placed, `${weave.count()} ends in the weave for ${placed} transactions`)
    const blocks = this.#blocks(expect)
    return {
      rows: inFiles + sum('rows'),
      postings: sum('postings'),
      words: sum('words'),
      blocks,
      problems: this.#problems,
    }
  }

  #blocks(expect: (right: boolean, problem: string) => void): number {
    let blocks = 0
    let before: { height: number; id: string } | undefined
    for (const { key, value } of this.tables.blocks.span({})) {
      blocks += 1
      const height = Buffer.from(key).readUInt32BE(0)
      const block = decodeBlock(height, value)
      const found = this.tables.blockIds.view(Buffer.from(block.id, 'base64url'))
      expect(
        found !== undefined && Buffer.compare(found, key) === 0,
        `block ${height} cannot be found by its id`,
      )
      if (before?.height === height - 1) {
        expect(block.previous === before.id, `block ${height} does not follow block ${height - 1}`)
      }
      before = { height, id: block.id }
    }
    const ids = this.tables.blockIds.count()
    expect(ids === blocks, `${ids} block ids for ${blocks} blocks`)
    return blocks
  }
}
