/** What a process writes that leads a work no more, and does not know it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { Lead } from '../../src/ledger/lead.js'
import { isRejected, type MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { postgresAbsent, postgresFor } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { suspend } from '../suspend.js'

const child = fileURLToPath(new URL('lead-child.js', import.meta.url))

/** All processes believe that they lead. */
function led(ledger: MoneyLedger): Pick<MoneyLedger, 'leads' | 'record' | 'commit'> {
  return {
    leads: async () => true,
    record: (kind, key) => ledger.record(kind, key),
    commit: (order) => ledger.commit(order),
  }
}

for (const engine of ['embedded', 'PostgreSQL'] as const)
  t.test(
    `the last one that began to lead writes, and no other (${engine})`,
    engine === 'embedded' ? {} : postgresAbsent,
    async (t) => {
      const ledger =
        engine === 'embedded'
          ? new EmbeddedLedger({ path: scratch('lead'), clock: systemClock })
          : await PostgresLedger.open({ url: (await postgresFor(t)).url, clock: systemClock })
      t.teardown(() => ledger.close())
      const [one, two] = [new Lead(led(ledger), 'a work'), new Lead(led(ledger), 'a work')]
      const write = async (fence: Awaited<ReturnType<Lead['take']>>, value: string): Promise<boolean> => {
        if (fence === undefined) throw new Error('it leads')
        const records = [{ kind: 'written', key: 'by', value }, fence]
        return !isRejected(await ledger.commit({ transfers: [], records }))
      }
      const first = await one.take()
      t.ok(await write(first, '"one"'))
      t.same(await one.take(), first, 'as long as nobody else leads')
      t.ok(await write(first, '"one again"'))
      const second = await two.take()
      t.notOk(await write(first, '"one, late"'))
      t.ok(await write(second, '"two"'))
      t.equal((await ledger.record('written', 'by'))?.value, '"two"')
      const third = await one.take()
      t.notOk(await write(second, '"two, late"'))
      t.ok(await write(third, '"one"'))
      t.equal((await ledger.record('lead', 'a work'))?.value, '3')
      const taken = await Promise.all(Array.from({ length: 5 }, () => new Lead(led(ledger), 'a work').take()))
      const writes = await Promise.all(taken.map((fence) => fence !== undefined && write(fence, '"many"')))
      t.equal(writes.filter((isWritten) => isWritten).length, 1, 'of those that begin at once')
      await new Lead(led(ledger), 'another work').take()
      t.equal((await ledger.record('lead', 'another work'))?.value, '1')
    },
  )

t.test('a process that stands still, is followed, and goes on writes nothing', postgresAbsent, async (t) => {
  const { url } = await postgresFor(t)
  const ledger = await PostgresLedger.open({ url, clock: systemClock })
  const running = spawn(process.execPath, [...process.execArgv, child, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(running, 'exit')
  t.teardown(async () => {
    running.kill('SIGKILL')
    await ended
    await ledger.close()
  })
  let written = ''
  running.stdout.on('data', (text: Buffer) => {
    written += text.toString()
  })
  await eventually('the child leads', () => written === 'leads\n')
  const lead = new Lead(ledger, 'a work')
  t.equal(await lead.take(), undefined)
  await suspend(running)
  const fence = await eventually('it is followed', () => lead.take())
  const record = { kind: 'written', key: 'by', value: '"the other one"' }
  t.notOk(isRejected(await ledger.commit({ transfers: [], records: [record, fence] })))
  running.stdin.write('the child\n')
  running.kill('SIGCONT')
  await ended
  t.equal(written, 'leads\nconflict\n')
  t.equal((await ledger.record('written', 'by'))?.value, '"the other one"')
})
