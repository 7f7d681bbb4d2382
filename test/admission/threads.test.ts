import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { BucketKeeper } from '../../src/admission/bucket-keeper.js'
import type { KeeperReply, KeeperRequest } from '../../src/admission/bucket-messages.js'
import { BucketTable } from '../../src/admission/bucket-table.js'
import { Clients } from '../../src/admission/clients.js'
import { KeptTable } from '../../src/admission/kept-table.js'
import { Locks } from '../../src/admission/locks.js'
import { MemoryBuckets } from '../../src/admission/memory-buckets.js'
import { clientAt } from '../conformance/buckets.js'
import type { HolderOrder } from './holder.js'
import { dataFolder, HandClock, silent, someClients } from './house.js'
import type { TakerOrder, TakerReport } from './taker.js'

/** Few buckets, so that threads meet in them all the time. */
const addresses = ['203.0.113.1', '203.0.113.2', '2001:db8::']
const paths = ['/a', '/b', '/c']

t.test(
  'four threads on one table, payments and restarts between: no token is lost, made or owed',
  async (t) => {
    const path = dataFolder()
    const options = { slots: 1024, capacity: 20_000, refillPerSecond: 0 }
    const clock = new HandClock()
    const kept = new Map<string, number>()
    const paid = new Map<string, number>()
    let checks = 0
    for (let life = 0; life < 3; life += 1) {
      const [ipMemory, resourceMemory] = [
        new SharedArrayBuffer(BucketTable.bytes(options)),
        new SharedArrayBuffer(BucketTable.bytes(options)),
      ]
      const tables = {
        ip: new KeptTable(ipMemory, options),
        resource: new KeptTable(resourceMemory, options),
      }
      const keeper = new BucketKeeper({ path, saveEveryMs: 1000 }, tables, clock, silent)
      const clients = new Clients(someClients, keeper.secret)
      const address = localAddress<KeeperRequest, KeeperReply>((message) => keeper.handle(message))
      const buckets = new MemoryBuckets({ ...tables, clients, secret: keeper.secret, keeper: address })
      const takers = [1, 2, 3, 4].map((seed) => {
        const order: TakerOrder = {
          options,
          ip: ipMemory,
          resource: resourceMemory,
          secret: keeper.secret,
          addresses,
          paths,
          rounds: 30_000,
          seed: seed * 7919 + life,
        }
        return new Worker(new URL('./taker.js', import.meta.url), { workerData: order })
      })
      // All of this process stands still, and goes on: who holds a lock then keeps it.
      if (life === 0)
        spawn('sh', ['-c', `kill -STOP ${process.pid}; sleep 0.5; kill -CONT ${process.pid}`], {
          stdio: 'ignore',
        })
      let running = takers.length
      const reports = takers.map(async (taker) => {
        const [report] = (await once(taker, 'message')) as [TakerReport]
        running -= 1
        return report
      })
      for (let payment = 0; running > 0; payment += 1) {
        const to = addresses[payment % addresses.length] ?? ''
        const tokens = 1 + ((payment * 37) % 900)
        if (payment < 60) {
          await buckets.credit(to, `life ${life} payment ${payment}`, tokens)
          paid.set(to, (paid.get(to) ?? 0) + tokens)
          if (payment % 5 === 0) keeper.save()
        }
        const held = await buckets.ofClient(clientAt(clients, to))
        if (held !== undefined && (held.tokens < 0 || held.paidTokens < 0 || held.tokens > options.capacity))
          t.fail('owed')
        checks += 1
        await new Promise((resolve) => setImmediate(resolve))
      }
      for (const report of await Promise.all(reports)) {
        for (const [bucket, tokens] of Object.entries(report))
          kept.set(bucket, (kept.get(bucket) ?? 0) + tokens)
      }
      for (const bucket of addresses) {
        const held = await buckets.ofClient(clientAt(clients, bucket))
        const left = (held?.tokens ?? 0) + (held?.paidTokens ?? 0)
        const all = options.capacity + (paid.get(bucket) ?? 0)
        t.equal(left + (kept.get(bucket) ?? 0), all, `life ${life}: ${bucket} holds what was not taken`)
      }
      await keeper.close()
    }
    t.ok(checks > 20, 'and looked at while they ran')
  },
)

function holder(memory: SharedArrayBuffer, holdMs?: number): Worker {
  const place = { memory, offset: 0, cells: 4, bits: 2, guarded: [32, 1] } as const
  const order: HolderOrder = holdMs === undefined ? place : { ...place, holdMs }
  return new Worker(new URL('holder.js', import.meta.url), { workerData: order })
}

t.test('a lock whose holder was ended is taken over, by one of those who wait', async (t) => {
  const memory = new SharedArrayBuffer(64)
  const cells = new Int32Array(memory, 0, 4)
  const counts = new Int32Array(memory, 16)
  await once(holder(memory), 'exit')
  t.not(cells[2], 0)
  const waiters = Array.from({ length: 6 }, () => {
    return new Worker(new URL('waiter.js', import.meta.url), { workerData: { memory, bits: 2, waiters: 6 } })
  })
  const codes = await Promise.all(waiters.map(async (waiter) => (await once(waiter, 'exit'))[0] as number))
  t.same(codes, [0, 0, 0, 0, 0, 0])
  t.equal(counts[1], 1, 'never two at once')
  t.equal(counts[2], 600, 'and each had its turns')
  t.equal(cells[2], 0)
})

t.test('a holder that does not run for long keeps its lock', async (t) => {
  const memory = new SharedArrayBuffer(64)
  const cells = new Int32Array(memory, 0, 4)
  const numbers = new Float64Array(memory, 32)
  const slow = holder(memory, 600)
  await once(slow, 'message')
  const locks = new Locks(cells)
  locks.take(2)
  numbers[0] = 1
  locks.release(2)
  await once(slow, 'exit')
  t.equal(numbers[0], 1, 'it has written before, and not again')
  t.equal(cells[2], 0)
})
