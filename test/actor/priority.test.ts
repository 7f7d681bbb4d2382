import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import t from 'tap'
import { setSlice, sliceUsOf } from '../../native/schedule/schedule.js'
import { systemClock } from '../../src/actor/clock.js'
import { preemptAtOnce, ranks, stepBack, stepEngineBack } from '../../src/actor/priority.js'
import { startThread } from '../../src/actor/thread.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations, generationBytes } from '../../src/catalog/generations.js'
import { folders } from '../../src/threads/folders.js'
import { settingsOf } from '../../src/threads/thread-settings.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { threadSettings } from '../thread-settings.js'

const ours = Math.min(...priorities())

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
    if (ours >= ranks.keeper) {
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
    t.same(nice, [ranks.keeper])
    await thread.stop(60_000)
  },
)

t.test('the priority of a query thread is lowered', async (t) => {
  if (ours >= ranks.query) {
    t.pass('this process is nice already: nothing can be seen')
    return
  }
  const path = scratch('priority-queries')
  const { config, memory } = threadSettings(path)
  const place = { path: folders(config).catalog, touchEveryMs: 0 }
  const keeper = new CatalogKeeper(place, new Generations(), systemClock)
  const settings = settingsOf(config, 'query')
  const thread = await startThread('query', 'query', { settings, memory, row: 0, nodes: [] })
  t.ok(priorities().includes(ranks.query))
  await thread.stop(60_000)
  await keeper.close()
})

t.test("the engine's threads step back, those for files do not", async (t) => {
  if (ours >= ranks.engine) return
  const lines: unknown[] = []
  stepEngineBack({ info: (...words: unknown[]) => void lines.push(words) })
  t.same(lines, [])
  // A thread of the test before may still be on its way out.
  await eventually('the threads have their rank', () =>
    [4, 5].includes(priorities().filter((each) => each === ranks.engine).length),
  )
  t.equal(Math.min(...priorities()), ours)
})

t.test('where it is not allowed, it is only logged', async (t) => {
  const lines: unknown[] = []
  const log = { info: (...words: unknown[]) => void lines.push(words) }
  stepBack(1000, log)
  t.equal(lines.length, 1, 'a nice value that is none')
  stepBack(ranks.background, log, 2 ** 22)
  t.equal(lines.length, 2, 'a thread that is gone')
})

t.test('a thread that answers requests asks for short slices; its nice value stays', (t) => {
  const log = { info: (_: unknown, message?: string) => t.fail(message ?? 'refused') }
  const before = sliceUsOf(0)
  if (before === undefined) {
    t.pass('the kernel has no slices of threads')
    t.end()
    return
  }
  const nice = priorities()
  preemptAtOnce(log)
  t.equal(sliceUsOf(0), 100)
  t.same(priorities(), nice)
  t.match(setSlice(2 ** 22 - 1, 100), /error 3/, 'no such thread')
  t.equal(setSlice(0, before), undefined)
  t.end()
})
