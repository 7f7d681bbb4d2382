import t from 'tap'
import { addressOf } from '../../src/actor/mailbox-address.js'
import { generationBytes } from '../../src/catalog/generations.js'
import { RunningThreads } from '../../src/main/running-threads.js'
import { scratch } from '../scratch.js'

t.test('what a thread threw is logged with its stack before it is lost', async (t) => {
  const said: { readonly about: { readonly name: string; readonly err: Error }; readonly words: string }[] =
    []
  const log = { fatal: (about: never, words: string) => void said.push({ about, words }) }
  const threads = new RunningThreads(1000, log as unknown as ConstructorParameters<typeof RunningThreads>[1])
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
  t.equal(said.length, 1)
  t.match(said[0], { about: { name: 'catalog', err: { message: /./, stack: /catalog\.js/ } } })
  t.match(said[0]?.words, 'nobody caught')
})
