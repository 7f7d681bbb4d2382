import {
  type EnteredStep,
  type RequestStep,
  type StepName,
  stepChannel,
  steps,
} from '../../src/gateway/steps.js'
import type { Exchange } from '../../src/serving/request-exchange.js'
import { type EndedExchange, endChannel } from '../../src/serving/request-log.js'

/** The steps of each exchange of this process as they run, compared with the table. */
export interface WatchedSteps {
  /** Steps of the exchanges that began since the last call, in order. */
  taken(): StepName[][]
  /** What ran in an order that the table does not have, or ended with a status that it does not have. */
  readonly wrong: readonly string[]
  close(): void
}

const content: ReadonlySet<string> = new Set(['data', 'raw', 'manifest'])

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
      if (name !== 'route') wrong.push(`${name} is first at ${exchange.path}`)
      return
    }
    const previous = before.at(-1) ?? ''
    if (!after.includes(previous)) wrong.push(`${name} follows ${previous} at ${exchange.path}`)
    before.push(name)
  }
  const onEnd = (message: unknown): void => {
    const { exchange, status } = message as EndedExchange
    const ran = last.get(exchange) ?? []
    const name = ran.at(-1)
    // What a route of the table answers is not a step's. A bug may end any step.
    const isByRoute = name === 'route' && (ran.length > 1 || !content.has(exchange.family))
    if (name === undefined || isByRoute || status === 500) return
    const { answers }: RequestStep = steps[name]
    if (!answers.includes(status)) wrong.push(`${name} ends with ${status} at ${exchange.path}`)
  }
  stepChannel.subscribe(onStep)
  endChannel.subscribe(onEnd)
  return {
    taken() {
      const all = begun
      begun = []
      return all
    },
    wrong,
    close() {
      stepChannel.unsubscribe(onStep)
      endChannel.unsubscribe(onEnd)
    },
  }
}
