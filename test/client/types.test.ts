/** The declarations of the packed client and of the packed program, as projects of others compile against them. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { packedClient } from './packed.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

/** Runs a program to its end, and gives what it printed. */
function plain([program = '', ...words]: readonly string[], cwd: string): string {
  return execFileSync(program, words, { cwd, encoding: 'utf8' })
}

/** A program that uses what each entry exports, with types that must hold, and one that must not. */
const consumer = (name: (entry: string) => string): string => `
import { ClientError, memoryStore, signerOfEthereum, SluiceClient, uploadFolder } from '${name('client')}'
import type { ClientSigner, FundingMode, ProgressEvent, UploadReceipt, UploadResult } from '${name('client')}'
import { ProvingFetcher, verifiedFetch } from '${name('fetch')}'
import { type DriveEntity, Drives, type OpenDrive, pathIn } from '${name('fs')}'
import { fileSource, fileStore, readFolder } from '${name('node')}'

const signer: ClientSigner = await signerOfEthereum(new Uint8Array(32))
const client = new SluiceClient({ network: 'local', signer, resume: memoryStore() })
const fundingMode: FundingMode = { mode: 'x402', maxMUSDCAmount: 1n }
const task = client.upload({ data: 'x', dataItemOpts: { tags: [{ name: 'a', value: 'b' }] }, fundingMode })
for await (const event of task) { const one: ProgressEvent = event; String(one.type) }
const result: UploadResult = await task
const receipt: UploadReceipt = result
const winc: string = receipt.winc
const { files } = await readFolder('x')
const { manifestResponse } = await uploadFolder(client, { files, events: { onFileComplete: ({ id }) => id.length } })
const id: string | undefined = manifestResponse?.id
const response: Response = await new ProvingFetcher({ gatewayUrls: [] }).fetch(id ?? '')
await verifiedFetch('x', { gatewayUrls: [], range: { start: 1 } })
const drives = new Drives({ gatewayUrl: 'http://x' })
const open: OpenDrive = await drives.open('x')
const paths = open.entities.map((one: DriveEntity) => pathIn(open, one))
await client.uploadFile({ file: await fileSource('x') })
fileStore('x')
export const all: unknown[] = [winc, response.status, paths, ClientError]
// @ts-expect-error amounts are texts
const wrong: number = receipt.winc
export { wrong }
`

function compiles(folder: string, name: string, resolution: 'bundler' | 'node16', source: string): string {
  const project = join(folder, `${name}-${resolution}`)
  mkdirSync(project)
  symlinkSync(join(folder, 'node_modules'), join(project, 'node_modules'))
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  writeFileSync(join(project, 'program.ts'), source)
  const module = resolution === 'bundler' ? 'esnext' : 'node16'
  const compilerOptions = { module, moduleResolution: resolution, target: 'es2022', lib: ['es2023', 'dom'] }
  const strict = { strict: true, noEmit: true, types: [] as string[], exactOptionalPropertyTypes: true }
  const config = { compilerOptions: { ...compilerOptions, ...strict }, files: ['program.ts'] }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' })
  return stdout + stderr
}

t.test(
  'consumers compile against the packed declarations, resolved as bundlers and as Node do',
  async (t) => {
    const folder = t.testdir({ node_modules: {}, one: {}, two: {} })
    const modules = join(folder, 'node_modules')
    for (const name of readdirSync(join(root, 'node_modules'))) {
      if (name.startsWith('.') || existsSync(join(modules, name))) continue
      symlinkSync(join(root, 'node_modules', name), join(modules, name))
    }
    const alone = packedClient(join(folder, 'one'))
    plain([process.execPath, tsc, '-p', 'tsconfig.client.json', '--outDir', 'dist/types'], root)
    const words = ['npm', 'pack', '--ignore-scripts', '--json', '--pack-destination', join(folder, 'two')]
    const [{ filename }] = JSON.parse(plain(words, root)) as [{ filename: string }]
    for (const [name, tarball] of [
      ['sluice-client', alone],
      ['sluice', join(folder, 'two', filename)],
    ] as const) {
      mkdirSync(join(modules, name))
      plain(['tar', 'xzf', tarball, '--strip-components=1', '-C', join(modules, name)], folder)
      const entry = (one: string): string =>
        name === 'sluice' ? `sluice/${one}` : one === 'client' ? name : `${name}/${one}`
      for (const resolution of ['bundler', 'node16'] as const)
        t.equal(compiles(folder, name, resolution, consumer(entry)), '', `${name}, ${resolution}`)
    }
  },
)
