/** Each callback of uploads: when it is called, how often, and with which fields. */
import t, { type Test } from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { ClientError } from '../../src/client/errors.js'
import { uploadFolder } from '../../src/client/folder.js'
import { type PayloadSource, sourceOfBytes } from '../../src/client/payload.js'
import { type ClientSigner, signerOfEthereum } from '../../src/client/signer.js'
import type { UploadEvents } from '../../src/client/task.js'
import { type Counter, info, receiptOf, serving } from './rig.js'

const names = [
  'onProgress',
  'onError',
  'onSuccess',
  'onUploadProgress',
  'onUploadError',
  'onUploadSuccess',
  'onSigningProgress',
  'onSigningError',
  'onSigningSuccess',
  'onFileStart',
  'onFileProgress',
  'onFileComplete',
  'onFileError',
  'onFolderProgress',
  'onFolderError',
  'onFolderSuccess',
] as const

type Call = readonly [name: string, event: Record<string, unknown> | undefined]

/** All callbacks there are, and what they were called with. */
function recorder(): { events: UploadEvents; calls: Call[]; of(name: string): Call[1][]; order(): string[] } {
  const calls: Call[] = []
  const events = Object.fromEntries(
    names.map((name) => [name, (event?: Record<string, unknown>) => void calls.push([name, event])]),
  ) as UploadEvents
  const of = (name: string): Call[1][] => calls.filter(([one]) => one === name).map(([, event]) => event)
  return { events, calls, of, order: () => [...new Set(calls.map(([name]) => name))] }
}

/** Takes items but those whose bytes have `no` in them. */
function service(t: Test): Promise<Counter> {
  return serving(t, ({ method, path, body }) => {
    if (path === '/v1/info') return info
    if (method !== 'POST') return undefined
    return body.includes('refused') ? { status: 400, text: 'no' } : { json: receiptOf(body) }
  })
}

async function clientOf({ url }: Counter, change: Partial<ClientSigner> = {}): Promise<SluiceClient> {
  const signer = { ...(await signerOfEthereum('01'.repeat(32))), ...change }
  return new SluiceClient({ uploadUrl: url, paymentUrl: url, signer, retry: { tries: 1 } })
}

t.test('an item that is taken', async (t) => {
  const { events, of, order } = recorder()
  await (await clientOf(await service(t))).upload({ data: 'hello', events })
  const [signing, upload] = [of('onSigningProgress'), of('onUploadProgress')]
  t.match(signing.at(-1), { processedBytes: 5, totalBytes: 5 })
  const { processedBytes, totalBytes } = upload.at(-1) ?? {}
  t.equal(processedBytes, totalBytes, 'the header is sent, too')
  t.ok(Number(totalBytes) > 5)
  t.strictSame(of('onProgress').length, signing.length + upload.length, 'both steps')
  t.match(of('onProgress')[0], { step: 'signing' })
  t.match(of('onProgress').at(-1), { step: 'upload' })
  for (const once of ['onSigningSuccess', 'onUploadSuccess', 'onSuccess']) t.equal(of(once).length, 1, once)
  t.strictSame(order(), [
    'onSigningProgress',
    'onProgress',
    'onSigningSuccess',
    'onUploadProgress',
    'onUploadSuccess',
    'onSuccess',
  ])
})

t.test('an item that the service refuses, and one that the wallet does not sign', async (t) => {
  const refused = recorder()
  await t.rejects(
    (await clientOf(await service(t))).upload({ data: 'refused', events: refused.events }).result,
    {
      code: 'rejected',
    },
  )
  t.match(refused.of('onUploadError'), [{ code: 'rejected' }])
  t.match(refused.of('onError'), [{ step: 'upload', error: { code: 'rejected' } }])
  t.strictSame(refused.of('onSigningError'), [])
  t.strictSame([...refused.of('onUploadSuccess'), ...refused.of('onSuccess')], [])

  const unsigned = recorder()
  const closed = (): Promise<never> => Promise.reject(new Error('the wallet was closed'))
  const client = await clientOf(await service(t), { sign: closed })
  await t.rejects(client.upload({ data: 'hello', events: unsigned.events }).result)
  t.match(unsigned.of('onSigningError'), [{ message: /the wallet was closed/ }])
  t.match(unsigned.of('onError'), [{ step: 'signing' }])
  const others = ['onUploadError', 'onUploadProgress', 'onUploadSuccess', 'onSigningSuccess']
  for (const other of others) t.strictSame(unsigned.of(other), [], other)
})

const file = (path: string, text: string): { path: string; source: PayloadSource; contentType: string } => ({
  path,
  source: sourceOfBytes(Buffer.from(text)),
  contentType: 'text/plain',
})

for (const bundleSmallFiles of [false, true]) {
  const how = bundleSmallFiles ? 'in a bundle' : 'one by one'
  t.test(`a folder ${how}`, async (t) => {
    const { events, of, order } = recorder()
    const client = await clientOf(await service(t))
    const files = [file('a.txt', 'one'), file('b.txt', 'three')]
    const result = await uploadFolder(client, { files, events, bundleSmallFiles })
    const facts = [
      { fileName: 'a.txt', fileIndex: 0, totalFiles: 2 },
      { fileName: 'b.txt', fileIndex: 1, totalFiles: 2 },
    ]
    const byName = (list: Call[1][]): Call[1][] =>
      list.toSorted((one, other) => Number(one?.fileIndex) - Number(other?.fileIndex))
    t.match(byName(of('onFileStart')), [
      { ...facts[0], fileSize: 3 },
      { ...facts[1], fileSize: 5 },
    ])
    t.match(
      byName(of('onFileComplete')),
      facts.map((fact, at) => ({ ...fact, id: result.fileResponses[at]?.id })),
    )
    if (!bundleSmallFiles) {
      const last = of('onFileProgress').findLast((event) => event?.fileIndex === 1)
      t.match(last, { ...facts[1], step: 'upload' })
      t.equal(last?.fileProcessedBytes, last?.fileTotalBytes)
    }
    t.match(of('onFolderProgress')[0], { processedFiles: 1, totalFiles: 2, currentPhase: 'hashing' })
    t.match(of('onFolderProgress').at(-1), { processedFiles: 2, totalFiles: 2, currentPhase: 'manifest' })
    t.match(of('onFolderProgress').at(-1), { processedBytes: 8, totalBytes: 8 })
    t.equal(of('onFolderSuccess').length, 1)
    t.strictSame([...of('onFolderError'), ...of('onFileError')], [])
    t.equal(order().at(-1), 'onFolderSuccess')
  })

  t.test(`a folder with a file that is refused, ${how}`, async (t) => {
    const { events, of } = recorder()
    const client = await clientOf(await service(t))
    const files = [file('bad.txt', 'refused')]
    await t.rejects(uploadFolder(client, { files, events, bundleSmallFiles }).result, ClientError)
    const place = { fileName: 'bad.txt', fileIndex: 0, totalFiles: 1 }
    t.match(of('onFileError'), [{ ...place, error: { code: 'rejected' } }])
    t.match(of('onFolderError'), [{ code: 'rejected' }])
    t.strictSame([...of('onFileComplete'), ...of('onFolderSuccess')], [])
  })
}
