import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { hashBandFile } from '../../src/torrent/hash.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { Seeder, type SeederOptions } from '../../src/torrent/seeder.js'
import type { Seeded } from '../../src/torrent/seeder-peer.js'
import { hybridTorrent, type Torrent } from '../../src/torrent/torrent.js'
import { plantFiles, python, script } from './libtorrent.js'

export function testMeters(): Meters {
  return new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
}

export const seederOptions: SeederOptions = {
  host: '127.0.0.1',
  port: 0,
  peersMax: 100,
  peersPerAddressMax: 100,
  slotsMax: 100,
  slotMs: 1000,
  upload: { bytesPerSecond: 0, bytesPerDay: 0 },
  line: connectionDefaults,
  encryption: 'accept',
}

/** A band of these files in a folder, and its torrent. */
export async function plantBand(
  folder: string,
  files: Readonly<Record<string, Uint8Array>>,
): Promise<{
  torrent: Torrent
  path: (name: string) => string
  files: Readonly<Record<string, Uint8Array>>
}> {
  plantFiles(folder, files)
  const hashed = []
  for (const name of Object.keys(files)) hashed.push(await hashBandFile(folder, name))
  return { torrent: hybridTorrent(hashed), path: (name) => join(folder, name), files }
}

export async function startSeeder(
  t: Test,
  bands: readonly Omit<Seeded, 'hashes'>[],
  options: Partial<SeederOptions> = {},
  clock: Clock = systemClock,
): Promise<{ seeder: Seeder; port: number; meters: Meters }> {
  const meters = testMeters()
  const seeder = new Seeder({ ...seederOptions, ...options }, clock, meters)
  seeder.offer(bands)
  const port = await seeder.listen()
  t.teardown(() => seeder.close())
  return { seeder, port, meters }
}

/** Runs a libtorrent leecher to its end; rejects with what it printed where it does not get everything. */
export async function leech(source: string, folder: string, ...words: readonly string[]): Promise<string> {
  const all = [script('torrent_peer.py'), 'leech', source, folder, '--seconds', '110', ...words]
  const { stdout } = await promisify(execFile)(python, all, { timeout: 600_000 })
  return stdout
}

/** Runs aria2 to its end, with no peers but those in its arguments; rejects where it does not get everything. */
export async function aria(folder: string, ...words: readonly string[]): Promise<void> {
  const alone = ['--no-conf', '--enable-dht=false', '--bt-enable-lpd=false', '--seed-time=0']
  const all = [...alone, '--file-allocation=none', '--dir', folder, ...words]
  await promisify(execFile)('aria2c', all, { timeout: 600_000 })
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Fails where a file is missing or another. */
export function sameFiles(t: Test, files: Readonly<Record<string, Uint8Array>>, folder: string): void {
  const wrong = Object.entries(files).filter(([name, bytes]) => {
    return sha256Hex(readFileSync(join(folder, name))) !== sha256Hex(bytes)
  })
  t.same(
    wrong.map(([name]) => name),
    [],
    'every file has the digest of the original',
  )
}
