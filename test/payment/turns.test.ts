/** Questions of strangers begin in turns: what other threads ask for uploads does not wait behind them. */
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { addressOf, answer } from '../../src/actor/address.js'
import { isRefusal } from '../../src/format/refusal.js'
import { Turns } from '../../src/payment/turns.js'

let nowMs = 0
const clock = { monotonic: () => nowMs }

t.test('messages are answered between a few questions, and not behind all of them', async (t) => {
  const turns = new Turns(clock)
  const { port1, port2 } = new MessageChannel()
  let answered = 0
  let behind = -1
  answer<string, string>(port2, async () => 'done')
  const uploads = addressOf<string, string>(port1, 10)
  const questions = Array.from({ length: 150 }, async () => {
    await turns.begin('192.0.2.1', undefined)
    answered += 1
  })
  await Promise.all([
    uploads.ask('reserve').then(() => {
      behind = answered
    }),
    ...questions,
  ])
  t.equal(answered, 150)
  t.ok(behind >= 0 && behind < 75, `${behind} questions came first`)
  port1.close()
})

t.test('who asks much waits behind who asks little, and is told so', async (t) => {
  const turns = new Turns(clock)
  const order: string[] = []
  let refused = 0
  const ask = async (client: string): Promise<void> => {
    const noTurn = await turns.begin(client, undefined)
    if (noTurn === undefined) order.push(client)
    else if (isRefusal(noTurn) && noTurn.fault === 'client') refused += 1
  }
  const many = Array.from({ length: 500 }, () => ask('much'))
  await Promise.all([...many, ask('little'), ask('little')])
  t.equal(refused, 300)
  t.ok(order.lastIndexOf('little') < 20, `at ${order.lastIndexOf('little')} of ${order.length}`)
})

t.test('all together are bounded', async (t) => {
  const turns = new Turns(clock)
  const faults = new Map<string, number>()
  await Promise.all(
    Array.from({ length: 3000 }, async (_, at) => {
      const noTurn = await turns.begin(`client ${at % 300}`, undefined)
      const word = noTurn?.fault ?? 'begun'
      faults.set(word, (faults.get(word) ?? 0) + 1)
    }),
  )
  t.ok((faults.get('self') ?? 0) > 900, 'what is too much is refused at once')
  t.equal((faults.get('self') ?? 0) + (faults.get('begun') ?? 0), 3000)
})

t.test('a service that was known does not wait, for a minute', async (t) => {
  const turns = new Turns(clock)
  let begun = 0
  const count = (): void => {
    begun += 1
  }
  turns.trust('Bearer x')
  const strangers = Array.from({ length: 100 }, () => turns.begin('a', 'Bearer y').then(count))
  await turns.begin('a', 'Bearer x')
  t.ok(begun <= 4, `${begun} came first`)
  await Promise.all(strangers)
  nowMs += 60_001
  begun = 0
  const others = Array.from({ length: 100 }, () => turns.begin('a', undefined).then(count))
  await turns.begin('a', 'Bearer x')
  t.ok(begun > 4, 'it is asked for its token again')
  await Promise.all(others)
})
