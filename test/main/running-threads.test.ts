import t from 'tap'
import type { Log } from '../../src/actor/log.js'
import { addressOf } from '../../src/actor/mailbox-address.js'
import { BucketTable } from '../../src/admission/bucket-table.js'
import type { AdmissionThread } from '../../src/admission/open-buckets.js'
import { generationBytes } from '../../src/catalog/generations.js'
import { RunningThreads } from '../../src/main/running-threads.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

t.test('what a thread threw is logged with its stack before it is lost', async (t) => {
  const logged: { readonly about: { readonly name: string; readonly err: Error }; readonly words: string }[] =
    []
  const log = { fatal: (about: never, words: string) => void logged.push({ about, words }) }
  const threads = new RunningThreads({ stopMs: 1000, log: log as unknown as Log, onEnded: () => undefined })
  const part = threads.part('catalog', 'catalog', () => ({
    keeper: { path: scratch('thrown'), touchEveryMs: 0 },
    generations: new SharedArrayBuffer(generationBytes),
    logLevel: 'silent',
    isBeside: false,
  }))
  const running = await part.start()
  const catalog = addressOf<{ readonly kind: string }, never>(threads.line('catalog'), 10)
  void catalog.ask({ kind: 'touched' })
  t.match(await running.lost, 'ended with code')
  t.equal(logged.length, 1)
  t.match(logged[0], { about: { name: 'catalog', err: { message: /./, stack: /catalog\.js/ } } })
  t.match(logged[0]?.words, 'nobody caught')
})

t.test('a thread that is started later is told the last of what was said before', async (t) => {
  const silent = { fatal: () => undefined, warn: () => undefined }
  const threads = new RunningThreads({
    stopMs: 1000,
    log: silent as unknown as Log,
    onEnded: () => undefined,
  })
  const options = { slots: 1024, capacity: 10, refillPerSecond: 1 }
  const [ipMemory, resourceMemory] = [
    new SharedArrayBuffer(BucketTable.bytes(options)),
    new SharedArrayBuffer(BucketTable.bytes(options)),
  ]
  const part = threads.replaceable(
    'admission',
    'admission',
    (): AdmissionThread => ({
      place: { ip: options, resource: options, ipMemory, resourceMemory },
      clients: { trustedProxies: [], exempt: [], ipv6PrefixBits: 64 },
      keeper: { path: scratch('told-later'), saveEveryMs: 1000 },
      logLevel: 'silent',
    }),
  )
  const running = await part.start()
  t.teardown(() => running.stop())
  const capacity = (): number => new BucketTable(ipMemory, options).rules.capacity
  t.equal(capacity(), 10)
  const say = (ipTokens: number): void => {
    const limits = { ipTokens, ipRefill: 1, resourceTokens: 5, resourceRefill: 1 }
    threads.tell('admission', 'settings', { settings: { limits } })
  }
  say(20)
  say(30)
  await eventually('the thread takes up what it is told', () => capacity() === 30)
  new Uint8Array(ipMemory).fill(0)
  await threads.replace('admission')
  await eventually('the next one, too', () => capacity() === 30)
})
