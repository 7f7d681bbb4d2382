/**
 * Bands by BitTorrent: our seeder and libtorrent's, each giving the same torrent to a libtorrent leecher, in turns; the hashing
 * pass beside its three digests through node:crypto; and the memory of the seeder under 50 leechers. Needs python3-libtorrent.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { digestedBy, openPass } from '../../native/digest/digest.js'
import { FallbackPass } from '../../native/digest/digest-fallback.js'
import type { DigestPass } from '../../native/digest/digest-pass.js'
import { hashBandFile } from '../../src/torrent/hash.js'
import { blockBytes, defaultPieceBytes, hybridTorrent, torrentBytes } from '../../src/torrent/torrent.js'
import { countFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

const python = '/usr/bin/python3'
const peer = fileURLToPath(new URL('../../../test/torrent/torrent_peer.py', import.meta.url))
const seed = fileURLToPath(new URL('swarm-seed.js', import.meta.url))
const sizeBytes =
  countFromCommandLine('swarm [MIB]: bands by BitTorrent, beside libtorrent (256 MiB)', 256) * 2 ** 20
const rounds = 3
const leechers = 50

const root = mkdtempSync(join(tmpdir(), 'swarm-'))

function lines(child: ChildProcess): (start: string) => Promise<number> {
  if (child.stdout === null) throw new Error('no output')
  const reader = createInterface({ input: child.stdout })
  return async (start) => {
    for (;;) {
      const [line] = (await once(reader, 'line')) as [string]
      if (line.startsWith(start)) return Number(line.split(' ')[1])
      if (line.startsWith('late')) throw new Error(line)
    }
  }
}

async function leech(torrent: string, port: number, ...more: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(root, 'leech-'))
  const words = [peer, 'leech', torrent, folder, '--peer', String(port), '--seconds', '120', ...more]
  const seconds = await lines(spawn(python, words))('done')
  rmSync(folder, { recursive: true })
  return seconds
}

async function hashing(folder: string): Promise<void> {
  const bytes = randomBytes(sizeBytes)
  const cut = { blockBytes, pieceBytes: defaultPieceBytes }
  const ways: [name: string, act: () => unknown][] = [
    ['the three digests alone through node:crypto', () => bare(bytes)],
    ['through the fallback', () => fed(new FallbackPass(cut), bytes)],
    [`through the ${digestedBy}`, () => fed(openPass(cut), bytes)],
    ['the whole pass, reading a file', () => hashBandFile(folder, 'data')],
  ]
  for (const [name, act] of ways) {
    const speeds: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      const before = process.cpuUsage()
      await act()
      const { user, system } = process.cpuUsage(before)
      speeds.push(sizeBytes / (user + system))
    }
    say(`hashing, ${name}: ${Math.max(...speeds).toFixed(0)} MB/s of processor time (user and system)`)
  }
}

function bare(bytes: Uint8Array): void {
  for (const name of ['sha256', 'sha256', 'sha1']) createHash(name).update(bytes).digest()
}

function fed(pass: DigestPass, bytes: Uint8Array): void {
  const step = 1 << 20
  for (let at = 0; at < bytes.length; at += step) pass.update(bytes.subarray(at, at + step))
  pass.finish()
}

async function main(): Promise<void> {
  const folder = join(root, 'band')
  mkdirSync(folder)
  writeFileSync(join(folder, 'data'), randomBytes(sizeBytes))
  const torrent = hybridTorrent([await hashBandFile(folder, 'data')])
  const file = join(root, 'band.torrent')
  writeFileSync(file, torrentBytes(torrent))
  const named = join(root, torrent.name)
  mkdirSync(named)
  writeFileSync(join(named, 'data'), '')
  await hashing(folder)

  rmSync(named, { recursive: true })
  const ours = spawn(process.execPath, [seed, file, folder])
  const ourPort = await lines(ours)('listening')
  const { renameSync, symlinkSync } = await import('node:fs')
  renameSync(folder, named)
  symlinkSync(named, folder)
  const theirs = spawn(python, [peer, 'seed', file, root, '--seconds', '600'])
  const theirPort = await lines(theirs)('listening')
  const took: Record<'ours' | 'theirs' | 'encrypted', number[]> = { ours: [], theirs: [], encrypted: [] }
  for (let round = 0; round < rounds; round += 1) {
    took.theirs.push(await leech(file, theirPort))
    took.ours.push(await leech(file, ourPort))
    took.encrypted.push(await leech(file, ourPort, '--encrypted', 'rc4'))
  }
  const best = (seconds: readonly number[]): number => sizeBytes / 1e6 / Math.min(...seconds)
  const [own, other] = [best(took.ours), best(took.theirs)]
  say(`seeding to libtorrent: ours ${own.toFixed(0)} MB/s, libtorrent ${other.toFixed(0)} MB/s`)
  say(`and every byte encrypted: ${best(took.encrypted).toFixed(0)} MB/s`)
  say(`ratio ${(own / other).toFixed(2)} (rounds ${JSON.stringify(took)})`)
  theirs.kill()

  const before = lines(ours)('rss')
  ours.kill('SIGUSR2')
  const alone = await before
  await Promise.all(Array.from({ length: leechers }, () => leech(file, ourPort)))
  const after = lines(ours)('rss')
  ours.kill('SIGUSR2')
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
  say(`${leechers} leechers at once: at most ${mebibytes(await after)} MiB (with one, ${mebibytes(alone)})`)
  ours.kill()
  rmSync(root, { recursive: true })
}

await main()
