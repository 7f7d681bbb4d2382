import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { selfSigned } from '../../src/certificates/self-signed.js'
import type { Corpus } from '../corpus/corpus.js'
import { emptyFolder } from '../kit/folders.js'
import type { Candidate } from './candidate.js'
import { fillWith, type Gateway, startGateway } from './gateway.js'
import { fileServer, type PairFiles, tlsFront } from './nginx.js'

/** A certificate of P-256 that all servers of a run have. */
export async function makePair(): Promise<PairFiles> {
  const folder = emptyFolder('tls')
  const made = await selfSigned(['localhost', '*.localhost'], systemClock.now(), 30)
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  writeFileSync(files.cert, made.cert)
  writeFileSync(files.key, made.key, { mode: 0o600 })
  return files
}

async function startOurs(corpus: Corpus, threads: number, { cert, key }: PairFiles): Promise<Gateway> {
  return startGateway({
    name: 'sluice',
    threads,
    settings: { TLS_PORT: '0', TLS_CERT_FILE: cert, TLS_KEY_FILE: key },
    fill: (seeding) => fillWith(seeding, corpus),
  })
}

/** This gateway, and nginx with the same contents as files; both speak TLS. */
export async function startTls(
  { corpus }: { readonly corpus: Corpus },
  threads: number,
): Promise<Candidate[]> {
  const pair = await makePair()
  const files = { files: corpus.filesFolder }
  return [await startOurs(corpus, threads, pair), await fileServer(files, threads, true, pair)]
}

/** This gateway, and nginx that speaks TLS in front of the same. */
export async function startTlsFront(
  { corpus }: { readonly corpus: Corpus },
  threads: number,
): Promise<Candidate[]> {
  const pair = await makePair()
  const ours = await startOurs(corpus, threads, pair)
  return [ours, await tlsFront(pair, ours, ours.plainPort ?? 0, threads)]
}
