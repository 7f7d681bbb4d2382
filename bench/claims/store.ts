import { createHash, randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRefusal } from '../../src/format/refusal.js'
import { DurableLog } from '../../src/store/segments/durable-log.js'
import { say } from '../kit/say.js'

/**
 * What keeping small payloads costs: `node dist/bench/claims/store.js [payloads]`, 20,000 of 6 KiB by default, in the folder for
 * temporary files. Accepted content: SHA-256, appended, and said to be durable by group commit.
 */
const payloads = Number(process.argv[2] ?? 20_000)
const payloadBytes = 6 * 1024
const folder = mkdtempSync(join(tmpdir(), 'store-bench-'))

async function measure(name: string, act: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await act()
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const each = ((user + system) / payloads).toFixed(1)
  say(`${name}: ${(payloads / seconds).toFixed(0)} payloads/s, ${each} us of processor each`)
}

async function accept(): Promise<void> {
  const log = await DurableLog.open(join(folder, 'log'))
  const bytes = randomFillSync(Buffer.alloc(payloadBytes))
  // As many at once as a busy service has, each waiting for its own word.
  for (let done = 0; done < payloads; done += 256) {
    await Promise.all(
      Array.from({ length: Math.min(256, payloads - done) }, async (_, at) => {
        bytes.writeUInt32LE(done + at)
        const place = log.append([bytes], createHash('sha256').update(bytes).digest())
        const durable = isRefusal(place) ? place : await log.flushed(place)
        if (isRefusal(durable)) throw new Error(durable.message)
      }),
    )
  }
  await log.close()
}

await measure('accepted, flushed', accept)
rmSync(folder, { recursive: true })
