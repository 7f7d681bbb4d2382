/** Transactions whose thread does not wait for the disk. */
import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { type Environment, openEnvironment, type Table } from '../../src/store/lmdb.js'
import { databaseFault } from '../../src/store/lmdb-check.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'

const child = fileURLToPath(new URL('./write-soon-child.js', import.meta.url))
const metaBytes = 144
/** Of the boot's number in a header, and where headers lie. */
const bootAt = 24 + 0x88

function opened(path = join(scratch('soon'), 'tables')): {
  environment: Environment
  table: Table
  path: string
} {
  const environment = openEnvironment(path)
  return { environment, table: environment.table('some'), path }
}

const keyOf = (group: number, at: number): Buffer => Buffer.from(`${group * 7919} ${at}`)

t.test('what was written can be read when it is visible, and by other environments', async (t) => {
  const { environment, table } = opened()
  for (let group = 0; group < 50; group += 1) {
    const { visible } = environment.writeSoon(() => {
      table.put(keyOf(group, 0), Buffer.from(`${group}`))
      return group
    })
    t.equal(await visible, group)
    t.strictSame(table.get(keyOf(group, 0)), Buffer.from(`${group}`))
  }
  await environment.flushed()
  await environment.close()
})

t.test('what threw is undone, and its neighbours stay', async (t) => {
  const { environment, table } = opened()
  const sound = environment.writeSoon(() => table.put(keyOf(1, 1), Buffer.alloc(9)))
  const failed = environment.writeSoon(() => {
    table.put(keyOf(2, 1), Buffer.alloc(9))
    throw new Error('no')
  })
  const later = environment.writeSoon(() => table.put(keyOf(3, 1), Buffer.alloc(9)))
  await t.rejects(failed.visible, /no/)
  await Promise.all([sound.visible, later.visible, sound.flushed, later.flushed])
  t.equal(table.count(), 2)
  t.equal(table.get(keyOf(2, 1)), undefined)
  await environment.close()
})

t.test('transactions of both kinds in any order', async (t) => {
  const { environment, table } = opened()

  let wanted = 0
  await Promise.all(
    Array.from({ length: 6 }, async (_, who) => {
      for (let at = 0; at < 60; at += 1) {
        const key = Buffer.from(`${who} ${at}`)
        const put = (): void => {
          const before = Number(Buffer.from(table.get(Buffer.from('sum')) ?? Buffer.from('0')).toString())
          table.put(key, Buffer.alloc(100))
          table.put(Buffer.from('sum'), Buffer.from(String(before + 1)))
        }
        wanted += 1
        if (random() < 0.5) await environment.writeSoon(put).visible
        else {
          environment.write(put)
          await pause(random() * 3)
        }
      }
    }),
  )
  t.equal(Number(Buffer.from(table.get(Buffer.from('sum')) ?? '').toString()), wanted)
  t.equal(table.count(), wanted + 1)
  await environment.close()
})

t.test('what is visible outlives kill -9', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const path = join(scratch('soon'), 'killed')
    const process_ = spawn(process.execPath, [child, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    const isOver = new Promise((resolve) => process_.once('exit', resolve))
    process_.stdout.on('data', (piece: Buffer) => {
      said += piece.toString()
      if (said.length > 200 * (round + 1)) process_.kill('SIGKILL')
    })
    await isOver
    const last = Number(said.slice(0, said.lastIndexOf('\n')).split('\n').at(-1))
    t.ok(last > 0)
    const { environment, table } = opened(path)
    const lost = Array.from({ length: last + 1 }, (_, at) => at).filter(
      (at) => table.get(Buffer.from(`${at}`)) === undefined,
    )
    t.strictSame(lost, [])
    await environment.close()
  }
})

/** Number of the last transaction that the file says is flushed: of the header in the second half of its first page. */
function flushedTransaction(file: Buffer): bigint {
  return file.readBigInt64LE(2048 + 24 + 0x80)
}

/** The file after a power cut: of each half of a page that was not flushed either what it was or what it became is there. */
function cutFile(flushed: Buffer, visible: Buffer, pageBytes: number): Buffer {
  const file = Buffer.from(visible)
  const half = pageBytes / 2
  for (let at = 0; at < flushed.length; at += half) {
    const before = flushed.subarray(at, at + half)
    if (random() < 0.5) file.set(before, at)
  }
  for (let at = flushed.length; at < file.length; at += pageBytes)
    if (random() < 0.5) file.fill(0, at, at + pageBytes)
  // The machine was started anew.
  for (const at of [0, half, pageBytes]) {
    const boot = file.subarray(at + bootAt, at + bootAt + 8)
    if (file.length >= at + 24 + metaBytes) boot.writeBigInt64LE(boot.readBigInt64LE() ^ 1n)
  }
  return file
}

t.test('after a power cut a group is there whole or not at all, and nothing flushed is lost', async (t) => {
  const { environment, table, path } = opened()

  const file = join(path, 'data.mdb')
  const [before, after] = [join(path, 'before'), join(path, 'after')]
  let [written, cutsMade] = [0, 0]
  const group = (): void => {
    for (let at = 0; at < 40; at += 1) table.put(keyOf(written, at), Buffer.alloc(300, written))
    for (let at = 0; at < 20 && written > 3; at += 1) table.remove(keyOf(written - 3, at))
    written += 1
  }
  for (let round = 0; round < 60; round += 1) {
    if (round % 3 === 0) environment.write(group)
    const first = environment.writeSoon(group)
    await first.visible
    t.equal(await first.flushed, undefined)
    const kept = written
    copyFileSync(file, before)
    const second = environment.writeSoon(group)
    await second.visible
    copyFileSync(file, after)
    await second.flushed
    const [flushed, visible] = [readFileSync(before), readFileSync(after)]
    // The second one was flushed before its copy was made: nothing of it can be lost.
    if (flushedTransaction(flushed) !== flushedTransaction(visible)) continue
    cutsMade += 1
    for (let cuts = 0; cuts < 3; cuts += 1) {
      const folder = join(scratch('soon'), 'cut')
      mkdirSync(folder)
      writeFileSync(join(folder, 'data.mdb'), cutFile(flushed, visible, 4096))
      t.equal(databaseFault(folder, Number.POSITIVE_INFINITY), undefined)
      const cut = opened(folder)
      const counts = Array.from(
        { length: written },
        (_, at) =>
          Array.from({ length: 40 }, (__, n) => cut.table.get(keyOf(at, n)) ?? []).filter(
            ({ length }) => length > 0,
          ).length,
      )
      const whole = counts.filter((count, at) =>
        at < kept ? count !== 40 && count !== 20 : count !== 0 && count !== 40,
      )
      t.strictSame(whole, [], `round ${round}: no group in part`)
      await cut.environment.close()
    }
  }
  t.ok(cutsMade > 5, `${cutsMade} of 60 cuts came before the flush`)
  await environment.close()
})
