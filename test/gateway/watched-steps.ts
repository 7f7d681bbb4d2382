import {
  type EnteredStep,
  type RequestStep,
  type StepName,
  stepChannel,
  steps,
} from '../../src/gateway/steps.js'
import type { Exchange } from '../../src/serving/request-exchange.js'

/** The steps of each exchange of this process as they run, compared with the table. */
export interface WatchedSteps {
  /** Steps of the exchanges that began since the last call, in order. */
  taken(): StepName[][]
  /** What ran in an order that the table does not have. */
  readonly wrong: readonly string[]
  close(): void
}

export function watchSteps(): WatchedSteps {
  const last = new WeakMap<Exchange, StepName[]>()
  const wrong: string[] = []
  let begun: StepName[][] = []
  const onStep = (message: unknown): void => {
    const { exchange, name } = message as EnteredStep
    const before = last.get(exchange)
    const { after }: RequestStep = steps[name]
    if (before === undefined) {
      const own = [name]
      last.set(exchange, own)
      begun.push(own)
      if (after.length > 0) wrong.push(`${name} is first at ${exchange.path}`)
      return
    }
    const previous = before.at(-1) ?? ''
    if (!after.includes(previous)) wrong.push(`${name} follows ${previous} at ${exchange.path}`)
    before.push(name)
  }
  stepChannel.subscribe(onStep)
  return {
    taken() {
      const all = begun
      begun = []
      return all
    },
    wrong,
    close: () => stepChannel.unsubscribe(onStep),
  }
}
