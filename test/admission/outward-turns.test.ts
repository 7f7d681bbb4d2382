/** Questions to services of others that strangers put: how many begin, whose turn it is, and what is remembered. */
import t from 'tap'
import { OutwardTurns } from '../../src/admission/outward-turns.js'
import { StrangersQuestions } from '../../src/admission/strangers-questions.js'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import { Hours } from './hours.js'

const options = { perSecond: 10, burst: 5, eachPerMinute: 100 }

/** Clients in the order in which their questions began. */
function scene(given = options) {
  const clock = new Hours()
  const turns = new OutwardTurns(given, clock)
  const begun: string[] = []
  const refused: [string, Refusal][] = []
  const ask = (client: string): void => {
    void turns.wait(client).then((refusal) => {
      if (refusal === undefined) begun.push(client)
      else refused.push([client, refusal])
    })
  }
  return { clock, turns, begun, refused, ask }
}

t.test('so many begin in a second, whoever asks, and others wait for some seconds', async (t) => {
  const { clock, begun, refused, ask } = scene()
  for (let at = 0; at < 200; at += 1) ask(`${11 + at}.1.1.1`)
  await clock.pass(0)
  t.equal(begun.length, 5)
  await clock.pass(1000)
  t.equal(begun.length, 15)
  await clock.pass(60_000)
  t.ok(begun.length > 80 && begun.length <= 85, `${begun.length} in eight seconds`)
  t.equal(refused.length, 200 - begun.length)
  t.match(refused[0]?.[1], { refused: 'busy', fault: 'self' })
})

t.test('a newcomer goes before all who have many, of one address or of one provider', async (t) => {
  for (const clientOf of [
    () => '20.1.1.1',
    (at: number) => `20.1.${at}.1`,
    (at: number) => `2001:db8:${at}::1`,
  ]) {
    const { clock, begun, ask } = scene()
    for (let at = 0; at < 90; at += 1) ask(clientOf(at))
    await clock.pass(500)
    ask('30.1.1.1')
    await clock.pass(100)
    t.equal(begun.at(-1), '30.1.1.1')
  }
})

t.test('a newcomer goes before those whose questions came to nothing', async (t) => {
  const { clock, begun, ask } = scene()
  const flood = (round: number): void => {
    for (let at = 0; at < 40; at += 1) ask(`${20 + at}.${round % 3 === 0 ? 1 : 0}.1.1`)
  }
  for (let round = 0; round < 10; round += 1) {
    flood(round)
    await clock.pass(1000)
  }
  flood(0)
  ask('99.1.1.1')
  await clock.pass(100)
  t.equal(begun.at(-1), '99.1.1.1')
})

t.test('what was worth it counts for nothing', async (t) => {
  const { clock, turns, begun, ask } = scene()
  for (let at = 0; at < 5; at += 1) {
    ask('20.1.1.1')
    await clock.pass(1000)
    turns.noteUseful('20.1.1.1')
  }
  for (let at = 0; at < 20; at += 1) ask('30.1.1.1')
  await clock.pass(0)
  ask('20.1.1.1')
  await clock.pass(100)
  t.equal(begun.at(-1), '20.1.1.1')
})

t.test('where too many wait, those with most make room', async (t) => {
  const { clock, refused, begun, ask } = scene({ ...options, eachPerMinute: 1000 })
  for (let at = 0; at < 600; at += 1) ask('20.1.1.1')
  await clock.pass(0)
  t.equal(refused.length, 600 - 405)
  ask('30.1.1.1')
  await clock.pass(100)
  t.equal(begun.at(-1), '30.1.1.1')
  t.strictSame(
    refused.map(([client]) => client),
    Array<string>(600 - 404).fill('20.1.1.1'),
  )
})

t.test('one network has so many in a minute, and this machine any number', async (t) => {
  const { clock, begun, refused, ask } = scene({ perSecond: 1000, burst: 1000, eachPerMinute: 10 })
  for (let at = 0; at < 20; at += 1) {
    ask(`20.1.1.${at}`)
    ask('127.0.0.1')
  }
  await clock.pass(0)
  t.equal(begun.filter((client) => client === '127.0.0.1').length, 20)
  t.equal(begun.length, 30)
  t.match(refused[0]?.[1], { refused: 'busy', fault: 'client' })
  await clock.pass(60_000)
  ask('20.1.1.1')
  await clock.pass(0)
  t.equal(begun.length, 31)
})

interface Answered {
  readonly word: 'nothing' | 'payment'
}

t.test(
  'one id is asked for once at a time, and not again for some seconds where it is nothing',
  async (t) => {
    const clock = new Hours()
    const questions = new StrangersQuestions<Answered>(options, ({ word }) => word === 'nothing', clock)
    let [sent, answer] = [0, { word: 'nothing' } as Answered | Refusal]
    const ask = (client = '20.1.1.1', id = 'id'): Promise<Answered | Refusal> =>
      questions.ask(client, id, async () => {
        sent += 1
        await new Promise((resolve) => setImmediate(resolve))
        return answer
      })
    t.strictSame(
      await Promise.all([ask(), ask('30.1.1.1'), ask('40.1.1.1')]),
      Array(3).fill({ word: 'nothing' }),
    )
    t.equal(sent, 1)
    answer = { word: 'payment' }
    t.strictSame(await ask(), { word: 'nothing' })
    t.equal(sent, 1)
    await clock.pass(3001)
    t.strictSame(await ask(), { word: 'payment' })
    t.strictSame(await ask(), { word: 'payment' })
    t.equal(sent, 3, 'only what is nothing is remembered')
    answer = refuse('upstream', 'upstream', 'silence')
    t.ok(isRefusal(await ask()))
    t.ok(isRefusal(await ask()))
    t.equal(sent, 5, 'nothing follows from silence')
    await t.rejects(
      questions.ask('50.1.1.1', 'other', () => Promise.reject(new Error('a bug'))),
      /a bug/,
    )
  },
)
