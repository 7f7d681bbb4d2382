/** Two payment services on one database: what only one should do is done by one, and by the other when that one is gone. */
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Lead } from '../../src/ledger/lead.js'
import type { MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import type { CardProvider } from '../../src/payment/cards/card-provider.js'
import { LocalCards } from '../../src/payment/cards/local-cards.js'
import type { Letter, Mailer } from '../../src/payment/letters/outbox.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { type PaymentRig, paymentRig } from './rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const dayMs = 24 * 3600_000
const start = Date.UTC(2026, 0, 1)

async function databaseOf(t: Test): Promise<string> {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  return server.database('shared')
}

async function give(rig: PaymentRig, to: string): Promise<void> {
  const path = `/v1/top-up/checkout-session/${encodeURIComponent(to)}/usd/1000?destinationAddressType=email`
  const { json } = await rig.get(path)
  const { paymentSession } = json as { paymentSession: { id: string } }
  await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')
}

t.test('letters are sent and days are compared by one of two', { skip }, async (t) => {
  const url = await databaseOf(t)
  const letters: Letter[] = []
  // A letter takes a while to go: meanwhile the other service would send it, too.
  let letGo = (): void => undefined
  const mayGo = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const mailer: Mailer = {
    label: 'smtp',
    send: async (letter) => {
      letters.push(letter)
      await mayGo
      return true
    },
    close: () => undefined,
  }
  const service = async (): Promise<PaymentRig> =>
    paymentRig(t, { mailer, ledger: await PostgresLedger.open({ url, clock: systemClock }) })
  const [one, two] = [await service(), await service()]
  await give(one, 'friend@example.org')
  await give(two, 'other@example.org')
  const sending = [one.service.outbox.work(), two.service.outbox.work()]
  await eventually('a letter came', () => letters.length > 0)
  letGo()
  const sent = await Promise.all(sending)
  t.strictSame(sent.sort(), [0, 2])
  t.equal(letters.length, 2)
  for (const rig of [one, two]) rig.setTime(start + dayMs + 3 * 3600_000)
  const compared = await Promise.all([one, two].map((rig) => rig.service.reconciler.work()))
  t.equal(compared.filter((days) => days > 0).length, 1, `${compared}`)
  t.equal((await two.service.reconciler.list(20)).length, Math.max(...compared), 'both can read them')
  const dayShown = ({ meters }: PaymentRig): number =>
    Number(/^payment_reconciliation_day_seconds (\d+)$/m.exec(meters.text())?.[1])
  const wanted = compared.map((days) => (days > 0 ? start / 1000 : 0))
  t.strictSame([one, two].map(dayShown), wanted, 'one of them shows what was found')
  const leader = compared[0] === 0 ? two : one
  await leader.ledger.close()
  const third = await service()
  third.setTime(start + dayMs + 4 * 3600_000)
  const rest = [leader === one ? two : one, third]
  const again = await Promise.all(rest.map((rig) => rig.service.reconciler.work()))
  t.strictSame(again, [0, 0], 'nothing is compared twice')
  t.strictSame(rest.map(dayShown).sort(), [0, start / 1000], 'and one of those that are left shows it')
})

t.test('who leads does so until its connection ends', { skip }, async (t) => {
  const url = await databaseOf(t)
  const [one, two] = await Promise.all([1, 2].map(() => PostgresLedger.open({ url, clock: systemClock })))
  if (one === undefined || two === undefined) throw new Error('no ledgers')
  t.equal(await one.leads('a'), true)
  t.equal(await one.leads('a'), true, 'still')
  t.equal(await two.leads('a'), false)
  t.equal(await two.leads('b'), true, 'another work')
  t.equal(await one.leads('b'), false)
  // As where the process dies, or the network does.
  const operator = new Client({ connectionString: url })
  await operator.connect()
  const holders = `locktype = 'advisory' AND objid = hashtext('a')::bigint::bit(32)::bigint`
  await operator.query(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE ${holders}`)
  await operator.end()
  await eventually('the second one leads', () => two.leads('a'))
  const again = await eventually('the first one answers again', async () => {
    try {
      return [await one.leads('a')]
    } catch {
      // The first question finds out that the connection is gone.
      return undefined
    }
  })
  t.strictSame(again, [false])
  await two.close()
  t.equal(await one.leads('a'), true, 'an orderly end')
  t.equal(await one.leads('b'), true)
  await one.close()
  t.equal(await one.leads('a'), false, 'not any more')
})

/** A ledger whose services all believe that they lead. */
async function allLead(t: Test): Promise<MoneyLedger> {
  const ledger = await PostgresLedger.open({ url: await databaseOf(t), clock: systemClock })
  ledger.leads = async () => true
  return ledger
}

t.test('a service that was followed while it sends a letter changes nothing more', { skip }, async (t) => {
  const ledger = await allLead(t)
  const sent: string[] = []
  let meanwhile = async (): Promise<unknown> => undefined
  const mailer = (name: string): Mailer => ({
    label: 'smtp',
    send: async () => {
      sent.push(name)
      await meanwhile()
      return name === 'one' ? { permanent: 'nobody of that name' } : true
    },
    close: () => undefined,
  })
  const [one, two] = [
    await paymentRig(t, { mailer: mailer('one'), ledger }),
    await paymentRig(t, { mailer: mailer('two'), ledger }),
  ]
  await give(one, 'friend@example.org')
  meanwhile = async () => {
    meanwhile = async () => undefined
    t.equal(await two.service.outbox.work(), 0, 'the other one waits for the time of the next try')
    two.setTime(start + 120_000)
    t.equal(await two.service.outbox.work(), 1)
  }
  t.equal(await one.service.outbox.work(), 0)
  t.strictSame(sent, ['one', 'two'])
  t.match(await one.service.outbox.list('', 10), [{ state: 'sent', tries: 2 }])
})

t.test('a service that stood still before it sends a letter does not send it', { skip }, async (t) => {
  const ledger = await allLead(t)
  let letters = 0
  const send = async (): Promise<true> => {
    letters += 1
    return true
  }
  const mailer: Mailer = { label: 'smtp', send, close: () => undefined }
  const rig = await paymentRig(t, { mailer, ledger })
  await give(rig, 'friend@example.org')
  const commit = ledger.commit.bind(ledger)
  ledger.commit = async (order) => {
    const outcome = await commit(order)
    if (order.records?.some(({ kind }) => kind === 'outbox') === true) rig.setTime(start + 20_000)
    return outcome
  }
  t.equal(await rig.service.outbox.work(), 0)
  t.equal(letters, 0)
  ledger.commit = commit
  rig.setTime(start + 120_000)
  t.equal(await rig.service.outbox.work(), 1)
  t.equal(letters, 1)
})

t.test('a service that was followed while it compares a day keeps nothing', { skip }, async (t) => {
  const ledger = await allLead(t)
  let takes = 0
  const cards = (given: MoneyLedger): CardProvider => {
    const local = new LocalCards(
      given,
      () => '',
      () => start,
    )
    local.taken = async () => {
      takes += 1
      await new Lead(ledger, 'reconciliation').take()
      return { entries: [] }
    }
    return local
  }
  const rig = await paymentRig(t, { ledger, cards })
  rig.setTime(start + dayMs + 3 * 3600_000)
  t.equal(await rig.service.reconciler.work(), 0)
  t.equal(takes, 1)
  t.strictSame(await rig.service.reconciler.list(20), [])
})
