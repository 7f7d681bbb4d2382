import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { type Part, supervise } from '../../src/actor/supervise.js'

function part(name: string, diary: string[], lost?: Promise<string>): Part {
  return {
    name,
    async start() {
      diary.push(`+${name}`)
      return { ...(lost === undefined ? {} : { lost }), stop: async () => void diary.push(`-${name}`) }
    },
  }
}

t.test('parts start in order and stop in reverse, once', async (t) => {
  const diary: string[] = []
  const running = await supervise(
    ['a', 'b', 'c'].map((name) => part(name, diary)),
    silentLog,
  )
  await Promise.all([running.stop(), running.stop()])
  t.strictSame(diary, ['+a', '+b', '+c', '-c', '-b', '-a'])
})

t.test('where a part cannot start, the running ones are stopped, and the reason is given', async (t) => {
  const diary: string[] = []
  const broken: Part = { name: 'broken', start: () => Promise.reject(new Error('port taken')) }
  await t.rejects(supervise([part('a', diary), broken, part('c', diary)], silentLog), /port taken/)
  t.strictSame(diary, ['+a', '-a'])
})

t.test('parts of one step start at once, the next step waits for all of them', async (t) => {
  const diary: string[] = []
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const slow: Part = { name: 'slow', start: () => held.then(() => part('slow', diary).start()) }
  const running = supervise([[slow, part('a', diary)], part('b', diary)], silentLog)
  await pause(10)
  t.strictSame(diary, ['+a'])
  release()
  await (await running).stop()
  t.strictSame(diary, ['+a', '+slow', '+b', '-b', '-slow', '-a'])
})

t.test(
  'where one part of a step cannot start, those beside it are taken down when they are up',
  async (t) => {
    const diary: string[] = []
    const broken: Part = { name: 'broken', start: () => Promise.reject(new Error('port taken')) }
    const late: Part = { name: 'late', start: () => pause(20).then(() => part('late', diary).start()) }
    await t.rejects(supervise([[broken, late], part('c', diary)], silentLog), /port taken/)
    t.strictSame(diary, ['+late', '-late'])
  },
)

t.test('a start that is ordered to end begins no further step, and takes down what is up', async (t) => {
  const diary: string[] = []
  const end = new AbortController()
  const last: Part = {
    name: 'last',
    start: () => {
      end.abort(new Error('ordered to end'))
      return part('last', diary).start()
    },
  }
  await t.rejects(
    supervise([part('a', diary), [last, part('b', diary)], part('c', diary)], silentLog, end.signal),
    /ordered to end/,
  )
  t.strictSame(diary, ['+a', '+last', '+b', '-b', '-last', '-a'])
})

t.test('a lost part is reported with its reason', async (t) => {
  const running = await supervise([part('a', [], Promise.resolve('ended with code 1'))], silentLog)
  t.equal(await running.lost, 'a: ended with code 1')
  await running.stop()
})
