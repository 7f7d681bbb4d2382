import { ClientError } from '../errors.js'
import { type Finding, type Gateways, untrue } from './gateways.js'

/** A question for several gateways, because nothing in an answer proves it. */
export interface Vote<Value> {
  /** What is voted on, for messages. */
  readonly about: string
  readonly quorum: number
  /** One gateway's answer. Rejects with a ClientError where it has none. */
  ask(gateway: string): Promise<Value>
  /** Answers of the same text are the same answer. */
  textOf(value: Value): string
  readonly onFinding?: ((finding: Finding) => void) | undefined
}

/** An answer, and how many gateways gave it of those that answered. */
export interface Agreed<Value> {
  readonly value: Value
  readonly by: number
  readonly of: number
}

/**
 * The answer on which more than half of the gateways that answer, and at least `quorum`, agree. So false and outdated answers
 * are outvoted. `onFinding` is called for each gateway that differs. Rejects with `untrue` without such a majority, and with the
 * error of the first gateway where none answers.
 */
export async function agreed<Value>(gateways: Gateways, vote: Vote<Value>): Promise<Agreed<Value>> {
  const votes = new Map<string, { readonly value: Value; readonly by: string[] }>()
  const answers = await Promise.allSettled(
    gateways.witnesses.map(async (gateway) => {
      const value = await vote.ask(gateway)
      const text = vote.textOf(value)
      const same = votes.get(text) ?? { value, by: [] }
      same.by.push(gateway)
      votes.set(text, same)
    }),
  )
  const [best, ...others] = [...votes].sort(([, one], [, other]) => other.by.length - one.by.length)
  if (best === undefined) {
    const failed = answers.find((answer) => answer.status === 'rejected')
    throw failed?.reason ?? new ClientError('not-found', `nobody knows ${vote.about}`, 'check the spelling')
  }
  const answered = [...votes.values()].reduce((sum, { by }) => sum + by.length, 0)
  const [, { value, by }] = best
  if (by.length < vote.quorum || by.length * 2 <= answered) {
    const counts = [...votes].map(([text, one]) => `${text} by ${one.by.length}`).join(', ')
    throw untrue(`gateways do not agree on ${vote.about}: ${counts}`)
  }
  for (const [text, other] of others)
    for (const gateway of other.by)
      vote.onFinding?.({ gateway, error: untrue(`${gateway}: ${vote.about} is ${text} there`) })
  return { value, by: by.length, of: answered }
}
