import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'

/** Microseconds between two samples. */
const intervalUs = 500

/** What the writer of the index does, by the functions on the stack. The first rule that any frame meets counts. */
const rules: readonly (readonly [stage: string, is: RegExp])[] = [
  ['merges: which rows', / merge-order\.js| writeIds segment-merge| id-table\.js.*segment-merge/],
  ['merges: words', / merge-words\.js/],
  ['merges: rows', / segment-merge\.js/],
  ['listing', / list bulk-writer\.js/],
  ['sort', / word-sort\.js| sort-records\.js| orderRows | rowsOfWords /],
  ['segment write', / batch-writer\.js| segment-draft\.js/],
  ['duplicates', / bulk-ids\.js| segment-ids\.js| find row-writer\.js| #isFree bulk-writer| givesWay /],
  ['hash', / word-batch\.js| numberIn /],
  ['parse', / packed-rows\.js| prepare bulk-writer/],
  ['rows into memory', / bulk-writer\.js| bulk-batch\.js| row-batch\.js/],
  ['other work of the keeper', / catalog-keeper\.js/],
]
const collector = 'garbage collection'
const outside = 'outside of the keeper'

/** Share of the samples of each stage, from a profile of the thread that runs the keeper. */
export function stagesOf({ nodes, samples = [] }: Profiler.Profile): Map<string, number> {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const known = new Map(nodes.map((node) => [node.id, node]))
  const stages = new Map<number, string>()
  for (const { id, callFrame } of nodes) {
    let stack = ''
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const { functionName, url } = known.get(at)?.callFrame ?? callFrame
      stack += ` ${functionName} ${url.split('/').at(-1)}`
    }
    const idle = callFrame.functionName === '(idle)' ? 'idle' : outside
    const found = rules.find(([, is]) => is.test(stack))?.[0] ?? idle
    stages.set(id, callFrame.functionName === '(garbage collector)' ? collector : found)
  }
  const counts = new Map<string, number>()
  for (const sample of samples) {
    const stage = stages.get(sample) ?? outside
    if (stage !== 'idle') counts.set(stage, (counts.get(stage) ?? 0) + 1)
  }
  return counts
}

/** Samples this thread while something is done, some stretches of it. */
export class StageSampler {
  readonly #session = new Session()
  readonly #counts = new Map<string, number>()

  async open(): Promise<void> {
    this.#session.connect()
    await this.#session.post('Profiler.enable')
    await this.#session.post('Profiler.setSamplingInterval', { interval: intervalUs })
  }

  async during(act: () => Promise<unknown>): Promise<void> {
    await this.#session.post('Profiler.start')
    await act()
    const { profile } = await this.#session.post('Profiler.stop')
    for (const [stage, count] of stagesOf(profile))
      this.#counts.set(stage, (this.#counts.get(stage) ?? 0) + count)
  }

  /** Share of each stage of all samples; ends. */
  shares(): [stage: string, share: number][] {
    this.#session.disconnect()
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    const order = [...rules.map(([stage]) => stage), collector, outside]
    return order.flatMap((stage) => {
      const count = this.#counts.get(stage) ?? 0
      return count === 0 ? [] : [[stage, count / all]]
    })
  }
}
