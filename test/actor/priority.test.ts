import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import t from 'tap'
import { niceness, stepBack } from '../../src/actor/priority.js'
import { startThread } from '../../src/actor/thread.js'
import { generationBytes } from '../../src/catalog/generations.js'
import { scratch } from '../scratch.js'

/** How nice each thread of this process is: the 19th field of its line in /proc, counted behind its name. */
function priorities(): number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const line = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
    return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[16])
  })
}

t.test('a thread of the background steps back, and takes no other with it', async (t) => {
  const ours = Math.min(...priorities())
  if (ours >= niceness.background) {
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
  t.same(nice, [niceness.background])
  await thread.stop(10_000)
})

t.test('where it is not allowed nothing happens but a line in the log', (t) => {
  const lines: unknown[] = []
  stepBack(1000, { debug: (...words: unknown[]) => void lines.push(words) })
  t.equal(lines.length, 1)
  t.end()
})
