import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { LearnedFile, type Learner } from '../../../src/source/upstream/learned-file.js'
import { scratch } from '../../scratch.js'

class Words implements Learner {
  changes = 0
  words: unknown

  learn(words: unknown): void {
    this.words = words
    this.changes += 1
  }

  kept(): unknown {
    return this.words
  }

  takeOver(kept: unknown): void {
    this.words = kept
  }
}

t.test('what was learned outlives the process', async (t) => {
  const path = join(scratch('learned'), 'peers.json')
  const [one, other] = [new Words(), new Words()]
  const file = new LearnedFile(path, { one, other }, silentLog, systemClock)
  await file.close()
  t.throws(() => statSync(path), 'nothing was learned')
  const again = new LearnedFile(path, { one, other }, silentLog, systemClock)
  one.learn({ a: 1 })
  other.learn([2])
  await again.close()
  t.equal(statSync(path).mode & 0o777, 0o600)
  const [first, second] = [new Words(), new Words()]
  await new LearnedFile(path, { one: first, other: second }, silentLog, systemClock).close()
  t.same([first.words, second.words], [{ a: 1 }, [2]])
})

t.test('a damaged file, and a disk that refuses, cost only what is learned anew', async (t) => {
  const folder = scratch('learned-damaged')
  for (const text of ['', '{', '[]', 'null', '7', '"x"', '\0\0']) {
    const path = join(folder, 'peers.json')
    writeFileSync(path, text)
    const words = new Words()
    const file = new LearnedFile(path, { words }, silentLog, systemClock)
    t.equal(words.words, undefined, JSON.stringify(text))
    words.learn('new')
    await file.close()
    t.same(JSON.parse(readFileSync(path, 'utf8')), { words: 'new' })
  }
  const path = join(folder, 'is-a-folder')
  mkdirSync(path)
  const words = new Words()
  const file = new LearnedFile(path, { words }, silentLog, systemClock)
  words.learn('lost')
  await file.close()
})
