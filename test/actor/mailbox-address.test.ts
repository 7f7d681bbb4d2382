import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { addressOf, answer } from '../../src/actor/mailbox-address.js'
import { isRefusal } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'

type Ask = { readonly wait: number; readonly value: number }

function pair(mailboxMax: number, heard: string[] = []) {
  const { port1, port2 } = new MessageChannel()
  const seen: number[] = []
  const caller = answer<Ask, number, string>(port2, async ({ wait, value }) => {
    seen.push(value)
    await pause(wait)
    return value * 2
  })
  return {
    address: addressOf<Ask, number, string>(port1, mailboxMax, { hear: (event) => heard.push(event) }),
    caller,
    seen,
    port1,
    port2,
  }
}

t.test('asked messages are answered, each with its own reply', async (t) => {
  const { address, port1 } = pair(10)
  const replies = await Promise.all([30, 1, 10].map((wait, value) => address.ask({ wait, value })))
  t.strictSame(replies, [0, 2, 4])
  port1.close()
})

t.test('a full mailbox refuses at once, and takes again when there is room', async (t) => {
  const { address, port1 } = pair(2)
  const first = address.ask({ wait: 20, value: 1 })
  t.equal(address.tell({ wait: 0, value: 2 }), true)
  t.equal(address.tell({ wait: 0, value: 3 }), false, 'told: false')
  t.match(await address.ask({ wait: 0, value: 4 }), { refused: 'busy' })
  await first
  await pause(5)
  t.equal(await address.ask({ wait: 0, value: 5 }), 10)
  port1.close()
})

t.test('told messages arrive in order and make room again', async (t) => {
  const { address, seen, port1 } = pair(4)
  for (let value = 0; value < 40; value += 1) {
    while (!address.tell({ wait: 0, value })) await pause(1)
  }
  while (isRefusal(await address.ask({ wait: 0, value: 40 }))) await pause(1)
  t.strictSame(
    seen,
    Array.from({ length: 41 }, (_, value) => value),
  )
  port1.close()
})

t.test('when an actor ends, all calls under way are refused', async (t) => {
  const { address, port2 } = pair(4)
  const waiting = address.ask({ wait: 10_000, value: 1 })
  port2.close()
  t.ok(isRefusal(await waiting))
  t.ok(isRefusal(await address.ask({ wait: 0, value: 1 })))
  t.equal(address.tell({ wait: 0, value: 1 }), false)
})

t.test('events are broadcast without being asked for', async (t) => {
  const heard: string[] = []
  const { address, caller, port1 } = pair(4, heard)
  caller.hear('one')
  await address.ask({ wait: 0, value: 1 })
  t.strictSame(heard, ['one'])
  port1.close()
})

t.test('batched replies of one turn of the loop go together, also from callbacks of their own', async (t) => {
  const { port1, port2 } = new MessageChannel()
  let posts = 0
  const post = port2.postMessage.bind(port2)
  port2.postMessage = (...given: Parameters<typeof post>) => {
    posts += 1
    post(...given)
  }
  const answers: ((reply: number) => void)[] = []
  const wait = (): Promise<number> => new Promise((resolve) => answers.push(resolve))
  answer<number, number>(port2, wait, { isBatched: true })
  const address = addressOf<number, number>(port1, 100, { isBatched: true })
  const replies = Promise.all(Array.from({ length: 20 }, (_, at) => address.ask(at)))
  await eventually('all answers', () => answers.length === 20)
  for (const [at, give] of answers.entries()) setImmediate(() => give(at))
  t.same(
    await replies,
    answers.map((_, at) => at),
  )
  t.ok(posts <= 2, `${posts} messages for 20 replies`)
  port1.close()
})
