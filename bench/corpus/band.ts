import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import { RootIndexWriter } from '../../src/bands/root-writer.js'
import { workFolder } from '../kit/folders.js'

/** Of 127 bytes each: 64 MiB in one partition, larger than those of the network's bands. */
const records = 528_000
const bandId = 'd-h0-tip-00000000-000000000000'
const source = join(workFolder, 'band')
const partition = '00.cdb'

/** The largest file of a band. */
export interface BandFile {
  readonly folder: string
  readonly name: string
  readonly sizeBytes: number
  /** Where a gateway offers it. */
  readonly gatewayPath: string
}

/** Made on first need. */
export async function benchBand(): Promise<BandFile> {
  if (!existsSync(source)) {
    const draft = `${source}.draft`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    const writer = new RootIndexWriter(draft)
    const root = createHash('sha256').update('root').digest()
    for (let record = 0; record < records; record += 1) {
      const id = createHash('sha256').update(`item ${record}`).digest()
      id[0] = 0
      writer.add(id, { path: [root], itemOffset: 5000 + record, dataOffset: 6000 + record }, record)
    }
    await writer.finish(new Date().toISOString(), {})
    renameSync(draft, source)
  }
  const bytes = readFileSync(join(source, partition))
  const digest = createHash('sha256').update(bytes).digest('hex')
  const gatewayPath = `/gateway/indexes/blob/${digest}`
  return { folder: source, name: partition, sizeBytes: bytes.length, gatewayPath }
}

/** Puts the band on the store of a gateway, which must not run. */
export async function shelveBand(dataPath: string): Promise<void> {
  const folder = join(dataPath, 'bands', 'own', 'root-tx-index')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  cpSync(source, join(folder, bandId), { recursive: true })
}

/** Waits until a gateway offers the band: its files are hashed first. */
export async function offered(port: number, { gatewayPath }: BandFile): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) {
    const { status } = await fetch(`http://127.0.0.1:${port}${gatewayPath}`, { method: 'HEAD' })
    if (status === 200) return
    await pause(100)
  }
  throw new Error('the band is not offered')
}
