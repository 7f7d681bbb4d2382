import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { policyOf, setPolicy, setSlice, sliceUsOf } from '../../native/schedule/schedule.js'
import { systemClock } from '../../src/actor/clock.js'
import {
  mayComeBack,
  preemptAtOnce,
  type Rank,
  ranks,
  stepBack,
  stepEngineBack,
} from '../../src/actor/priority.js'
import { ownThreadControl } from '../../src/actor/priority-boost.js'
import { startThread } from '../../src/actor/thread.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations, generationBytes } from '../../src/catalog/generations.js'
import { folders } from '../../src/threads/folders.js'
import { settingsOf } from '../../src/threads/thread-settings.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { threadSettings } from '../thread-settings.js'

const ours = Math.min(...priorities())
const canSee = policyOf(0) === 'other'
if (!canSee) t.comment('the addon was not built, or may not ask: only nice values are tested')

/** How nice each thread of this process is: the 19th field of its line in /proc, counted behind its name. */
function priorities(): number[] {
  return threads().flatMap((thread) => {
    try {
      const line = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
      return [Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[16])]
    } catch {
      // It has ended meanwhile.
      return []
    }
  })
}

function threads(): number[] {
  return readdirSync('/proc/self/task').map(Number)
}

t.test(
  'the priority of the keeper is lowered, it keeps a share, and no other thread is affected',
  async (t) => {
    if (ours >= ranks.keeper.niceness) {
      t.pass('this process is nice already: nothing can be seen')
      return
    }
    const path = scratch('priority')
    const thread = await startThread('catalog', 'catalog', {
      keeper: { path, touchEveryMs: 0 },
      generations: new SharedArrayBuffer(generationBytes),
      logLevel: 'silent',
      isBeside: true,
    })
    // Whatever the thread started of the pool that all share must have been there before.
    await stat(path)
    const nice = priorities().filter((each) => each > ours)
    t.same(nice, [ranks.keeper.niceness])
    if (canSee) t.notOk(threads().some((each) => policyOf(each) === 'idle'))
    await thread.stop(60_000)
  },
)

t.test('a query thread gets the lowest priority that it can leave again', async (t) => {
  if (ours >= ranks.query.niceness) {
    t.pass('this process is nice already: nothing can be seen')
    return
  }
  const path = scratch('priority-queries')
  const { config, memory } = threadSettings(path)
  const place = { path: folders(config).catalog, touchEveryMs: 0 }
  const keeper = new CatalogKeeper(place, new Generations(), systemClock)
  const settings = settingsOf(config, 'query')
  const thread = await startThread('query', 'query', { settings, memory, row: 0, nodes: [] })
  t.ok(priorities().includes(ranks.query.niceness))
  const { thread: number } = thread.reported as { thread?: number }
  t.equal(number !== undefined, mayComeBack(ranks.query))
  if (canSee && number !== undefined) {
    t.equal(policyOf(number), 'idle')
    t.equal(ownThreadControl.put(number, 'other'), undefined, 'it comes back')
    t.equal(policyOf(number), 'other')
    t.ok((ownThreadControl.ranNs(number) ?? 0) > 0)
  }
  await thread.stop(60_000)
  await keeper.close()
})

/** A thread that steps back to the first of these ranks, and starts one that steps back to the next, and so on. */
async function stepping(names: readonly string[]): Promise<readonly Rank[]> {
  const modules = ['../../src/actor/priority.js', '../../native/schedule/schedule.js']
  const [priority, native] = modules.map((path) => new URL(path, import.meta.url).href)
  const code = `
    const { parentPort, workerData, Worker } = require('node:worker_threads')
    const { getPriority } = require('node:os')
    void (async () => {
      const { ranks, stepBack } = await import(${JSON.stringify(priority)})
      const { policyOf } = await import(${JSON.stringify(native)})
      const [name, ...rest] = workerData.names
      stepBack(ranks[name])
      const own = [{ policy: policyOf(0), niceness: getPriority() }]
      if (rest.length === 0) return parentPort.postMessage(own)
      new Worker(workerData.code, { eval: true, workerData: { ...workerData, names: rest } })
        .once('message', (inner) => parentPort.postMessage([...own, ...inner]))
    })()`
  const worker = new Worker(code, { eval: true, workerData: { names, code } })
  const [found] = await once(worker, 'message')
  await worker.terminate()
  return found as readonly Rank[]
}

t.test('a thread of the background runs where no other wants to, and so do all that it starts', async (t) => {
  if (!canSee) return
  const policies = (await stepping(['background', 'proof', 'keeper'])).map(({ policy }) => policy)
  t.same(policies, ['idle', 'idle', 'idle'])
  t.equal(policyOf(0), 'other', 'the thread that started it does not')
})

t.test('pool threads that a client may wait for keep a share, whatever their niceness', async (t) => {
  if (!canSee) return
  const [one] = await stepping(['proof'])
  t.same([one?.policy, one?.niceness], ['other', Math.max(ours, ranks.proof.niceness)])
})

t.test("the engine's threads step back, those for files do not", async (t) => {
  if (ours >= ranks.engine.niceness) return
  const lines: unknown[] = []
  stepEngineBack({ info: (...words: unknown[]) => void lines.push(words) })
  t.same(lines, [])
  // A thread of the test before may still be on its way out.
  await eventually(() =>
    [4, 5].includes(priorities().filter((each) => each === ranks.engine.niceness).length),
  )
  t.equal(Math.min(...priorities()), ours)
})

t.test('where it is not allowed, it is only logged', async (t) => {
  const lines: unknown[] = []
  const log = { info: (...words: unknown[]) => void lines.push(words) }
  stepBack({ policy: 'other', niceness: 1000 }, log)
  t.equal(lines.length, 1, 'a nice value that is none')
  stepBack(ranks.background, log, 2 ** 22)
  t.equal(lines.length, 2, 'a thread that is gone')
  t.equal(typeof setPolicy(2 ** 22, 'idle'), 'string')
  t.equal(policyOf(2 ** 22), undefined)
})

t.test('a thread that answers requests asks for short slices; its policy and nice value stay', (t) => {
  const log = { info: (_: unknown, message?: string) => t.fail(message ?? 'refused') }
  const before = sliceUsOf(0)
  if (!canSee || before === undefined) {
    t.pass('the kernel has no slices of threads')
    t.end()
    return
  }
  const nice = priorities()
  preemptAtOnce(log)
  t.equal(sliceUsOf(0), 100)
  t.equal(policyOf(0), 'other')
  t.same(priorities(), nice)
  t.match(setSlice(2 ** 22 - 1, 100), /error 3/, 'no such thread')
  t.equal(setSlice(0, before), undefined)
  t.end()
})
