import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import type { Corpus } from '../corpus/corpus.js'
import { Seeding } from '../corpus/seed.js'
import type { Sites } from '../corpus/sites.js'
import { freePort, start } from '../kit/child.js'
import { emptyFolder, sluiceWords } from '../kit/folders.js'
import { type Candidate, candidate } from './candidate.js'

export interface GatewayOptions {
  readonly name: string
  /** Edge threads. */
  readonly threads?: number
  readonly settings?: Readonly<Record<string, string>>
  /** The command of another build; this one where it is absent. */
  readonly program?: string
  /** Puts things into the data folder before the start. */
  readonly fill?: (seeding: Seeding) => Promise<void>
  /** The same, after the catalog was written and closed. */
  readonly prepare?: (dataPath: string) => Promise<void> | void
}

/** Settings of a gateway without sources: its node does not exist, and it has no gateways. */
export const offline = {
  NETWORK: 'mainnet',
  TRUSTED_NODE_URL: 'http://127.0.0.1:9',
  TRUSTED_GATEWAYS_URLS: '{}',
  START_HEIGHT: '0',
}

/**
 * Contents of the network are mostly older than any fork, and what is filled in is to be like them from the first request on. Its
 * block is the first of a devnet, which takes 40 s to bury it by default: then each answer is decided anew, in whatever is being
 * measured.
 */
const buriedHeight = 20

/** Has a devnet make as many blocks at once, and waits until the gateway knows. */
async function bury({ port }: Candidate, devnetPort: number): Promise<void> {
  await fetch(`http://127.0.0.1:${devnetPort}/mine/${buriedHeight}`)
  for (let turn = 0; turn < 200; turn += 1) {
    const height = await (await fetch(`http://127.0.0.1:${port}/height`)).text()
    if (Number(height) >= buriedHeight) return
    await pause(100)
  }
  throw new Error('the gateway does not hear of the blocks of the devnet')
}

/** This program; with TLS_PORT set its `port` is that. */
export interface Gateway extends Candidate {
  readonly plainPort?: number
}

/** Starts this program on a new data folder. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { name, threads = 1, settings = {}, program, fill, prepare } = options
  const dataPath = join(emptyFolder(`data-${name.replaceAll(/\W+/g, '-')}`), 'data')
  mkdirSync(dataPath, { mode: 0o700 })
  const seeding = new Seeding(dataPath)
  await fill?.(seeding)
  await seeding.close()
  await prepare?.(dataPath)
  const isBuried = fill !== undefined && settings.NETWORK === undefined
  const devnetPort = isBuried ? await freePort() : 0
  const env = {
    PORT: '0',
    DEVNET_PORT: String(devnetPort),
    ...(isBuried ? { DEVNET_BLOCK_MS: '0' } : {}),
    DEVNET_SEED: 'false',
    LISTEN_ADDRESS: '127.0.0.1',
    DATA_PATH: dataPath,
    EDGE_THREADS: String(threads),
    ...settings,
  }
  const speaksTls = settings.TLS_PORT !== undefined
  const plainShape = /"gateway":"http:\/\/[^"]*:(?<plain>\d+)/
  const bothShape = /"gateway":"http:\/\/[^"]*:(?<plain>\d+)"[^}]*"https":"https:\/\/[^"]*:(?<secure>\d+)/
  const shape = speaksTls ? bothShape : plainShape
  const words = program === undefined ? sluiceWords : [...sluiceWords.slice(0, -1), program]
  const child = await start(process.execPath, [...words, 'start'], { env, shape })
  const { plain, secure } = { ...child.matched?.groups }
  const started = candidate(name, 'ours', Number(plain), child)
  if (isBuried) await bury(started, devnetPort)
  return speaksTls ? { ...started, port: Number(secure), speaksTls, plainPort: started.port } : started
}

/** A whole corpus, and sites over it, into a data folder. */
export async function fillWith(seeding: Seeding, corpus: Corpus, sites?: Sites): Promise<void> {
  for (const { id, sizeBytes, digest } of corpus.contents) {
    await seeding.content({ id, size: sizeBytes, digest }, join(corpus.filesFolder, id))
  }
  for (const { id, manifest, digest } of sites?.all ?? []) {
    const contentType = 'application/x.arweave-manifest+json'
    await seeding.content({ id, size: manifest.length, digest, contentType }, manifest)
  }
  if (sites !== undefined) await seeding.name(sites.all.map(({ name, id }) => [name, id]))
}
