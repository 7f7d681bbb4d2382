/**
 * Writes to a database whose disk fails now and then, and compares it with what was committed. Words: folder, durable or not,
 * seed, and `state` where the update of the state alone is refused, for a while.
 */
import { once } from 'node:events'
import { closeSync, openSync, writeSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { isDiskError } from '../../src/store/disk-error.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { databaseFault } from '../../src/store/lmdb-check.js'

const [folder = '', kind = '', seedText = '1', what = ''] = process.argv.slice(2)
const environment = openEnvironment(folder, 4, kind === 'durable')
const table = environment.table('rows')
const model = new Map<number, Buffer>()
const codes = new Set<unknown>()
let [written, refused, state] = [0, 0, Number(seedText)]

/** Whole numbers below `below`, the same for the same seed. */
function next(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

function change(): void {
  const draft = Array.from({ length: 1 + next(30) }, () => {
    const value =
      next(10) < 3 ? undefined : Buffer.alloc(1 + (next(20) === 0 ? next(60_000) : next(900)), next(256))
    return [next(600), value] as const
  })
  try {
    environment.write(() => {
      for (const [key, value] of draft) {
        if (value === undefined) table.remove(Buffer.from(String(key)))
        else table.put(Buffer.from(String(key)), value)
      }
    })
  } catch (error) {
    if (!isDiskError(error)) throw error
    codes.add((error as NodeJS.ErrnoException).code)
    refused += 1
    return
  }
  written += 1
  for (const [key, value] of draft) {
    if (value === undefined) model.delete(key)
    else model.set(key, value)
  }
}

function compare(): void {
  environment.refresh()
  if (table.count() !== model.size) throw new Error(`${table.count()} rows, and not ${model.size}`)
  for (const [key, value] of model) {
    const found = table.get(Buffer.from(String(key)))
    if (found === undefined || Buffer.compare(found, value) !== 0) throw new Error(`row ${key} is wrong`)
  }
}

/** One call of so many fails from now on; see faults.c. */
function fail(oneOf: number): void {
  const control = openSync(process.env.FAULTS_CONTROL ?? '', 'r+')
  const word = Buffer.alloc(8)
  word.writeBigUInt64LE(BigInt(oneOf))
  writeSync(control, word, 0, 8, 8)
  closeSync(control)
}

/** Ends the failures when so many calls have failed: from a thread of its own, since this one waits in a call. */
function endedAfter(failures: number): Worker {
  const script = `
    const { openSync, readSync, writeSync } = require('node:fs')
    const control = openSync(process.env.FAULTS_CONTROL, 'r+')
    const word = Buffer.alloc(8)
    do readSync(control, word, 0, 8, 40)
    while (word.readBigUInt64LE() < ${failures}n)
    writeSync(control, Buffer.alloc(8), 0, 8, 8)`
  return new Worker(script, { eval: true })
}

if (what === 'state') {
  for (let at = 0; at < 20; at += 1) change()
  const ending = endedAfter(1000)
  await once(ending, 'online')
  fail(1)
  for (let at = 0; at < 20; at += 1) change()
  compare()
} else {
  for (const oneOf of [0, 30, 5, 0]) {
    fail(oneOf)
    for (let at = 0; at < 150; at += 1) {
      change()
      if (at % 30 === 0) compare()
    }
  }
}
compare()
await environment.close()
const again = openEnvironment(folder, 4, kind === 'durable')
const rows = again.table('rows').count()
await again.close()
const outcome = {
  written: what === 'state' ? written === 40 : written > 200,
  refused: refused > 20,
  codes: [...codes],
  lost: model.size - rows,
}
process.stdout.write(
  JSON.stringify({ ...outcome, fault: databaseFault(folder, Number.MAX_SAFE_INTEGER) ?? 'none' }),
)
