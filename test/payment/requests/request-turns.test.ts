/** Questions of strangers begin in turns: what other threads ask for uploads does not wait behind them. */
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { addressOf, answer } from '../../../src/actor/mailbox-address.js'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import { RequestTurns } from '../../../src/payment/requests/request-turns.js'

let nowMs = 0
const clock = { ...systemClock, monotonic: () => nowMs }

t.test('messages are answered between a few questions, and not behind all of them', async (t) => {
  const turns = new RequestTurns(clock)
  const { port1, port2 } = new MessageChannel()
  let answered = 0
  let behind = -1
  answer<string, string>(port2, async () => 'done')
  const uploads = addressOf<string, string>(port1, 10)
  const questions = Array.from({ length: 150 }, async () => {
    const over = await turns.begin('192.0.2.1', undefined)
    answered += 1
    if (!isRefusal(over)) over()
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
  const turns = new RequestTurns(clock)
  const order: string[] = []
  let refused = 0
  const ask = async (client: string): Promise<void> => {
    const over = await turns.begin(client, undefined)
    if (isRefusal(over)) {
      if (over.fault === 'client') refused += 1
      return
    }
    order.push(client)
    over()
  }
  const many = Array.from({ length: 500 }, () => ask('much'))
  await Promise.all([...many, ask('little'), ask('little')])
  t.equal(refused, 300)
  t.ok(order.lastIndexOf('little') < 20, `at ${order.lastIndexOf('little')} of ${order.length}`)
})

t.test('all together are bounded', async (t) => {
  const turns = new RequestTurns(clock)
  const faults = new Map<string, number>()
  await Promise.all(
    Array.from({ length: 3000 }, async (_, at) => {
      const over = await turns.begin(`client ${at % 300}`, undefined)
      if (!isRefusal(over)) over()
      const word = isRefusal(over) ? over.fault : 'begun'
      faults.set(word, (faults.get(word) ?? 0) + 1)
    }),
  )
  t.ok((faults.get('self') ?? 0) > 900, 'what is too much is refused at once')
  t.equal((faults.get('self') ?? 0) + (faults.get('begun') ?? 0), 3000)
})

t.test('a service that was known does not wait, for a minute', async (t) => {
  const turns = new RequestTurns(clock)
  let begun = 0
  const count = (over: (() => void) | Refusal): void => {
    begun += 1
    if (!isRefusal(over)) over()
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

t.test('four are under way at a time; one that waits for others lets those behind it begin', async (t) => {
  const held: (() => void)[] = []
  const after = (_ms: number, then: () => void) => {
    held.push(then)
    return { cancel: () => undefined }
  }
  const turns = new RequestTurns({ ...clock, after })
  const overs: (() => void)[] = []
  for (let at = 0; at < 7; at += 1)
    void turns.begin(`client ${at}`, undefined).then((over) => isRefusal(over) || overs.push(over))
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  await turn()
  t.equal(overs.length, 4)
  overs[0]?.()
  overs[0]?.()
  await turn()
  t.equal(overs.length, 5, 'one was over, and counts once')
  held[1]?.()
  await turn()
  t.equal(overs.length, 6, 'one has been held for long enough')
  overs[1]?.()
  await turn()
  t.equal(overs.length, 6, 'which gives its turn once')
})

t.test('who leaves before its turn has asked for nothing', async (t) => {
  const turns = new RequestTurns({ ...clock, after: () => ({ cancel: () => undefined }) })
  const overs = await Promise.all(['a', 'b', 'c', 'd'].map((client) => turns.begin(client, undefined)))
  const left = new AbortController()
  const gone = turns.begin('e', undefined, left.signal)
  const next = turns.begin('f', undefined)
  left.abort()
  t.match(await gone, { refused: 'late' })
  for (const over of overs) if (!isRefusal(over)) over()
  t.notOk(isRefusal(await next), 'the one behind it begins')
})
