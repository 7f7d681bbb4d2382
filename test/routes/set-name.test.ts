import t from 'tap'
import { systemClock as clock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { signedHeaders } from '../../src/client/signed-headers.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import type { Id } from '../../src/format/id.js'
import { nameOrderText } from '../../src/names/name-order.js'
import { type SetNameParts, setNameRoute } from '../../src/routes/set-name-route.js'

const id = 'A'.repeat(43) as Id

t.test('a disk that takes no name is told as busy, so that the wallet comes again', async (t) => {
  const order = { record: { id, ttlSeconds: 60 }, gateway: 'gateway.example', timeMs: clock.now() }
  const signed = await signedHeaders(await signerOfEthereum('01'.repeat(32)), nameOrderText('docs', order))
  const headers: Readonly<Record<string, string>> = { host: 'gateway.example', ...signed }
  let failure: unknown = Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' })
  const registry = { maySet: () => true, setSigned: () => Promise.reject(failure) }
  const route = setNameRoute({
    pathPrefix: '/ar-io',
    rootHosts: ['gateway.example'],
    registry: () => registry,
    guard: { blocksName: () => false },
    clock,
    log: silentLog,
    clientOf: () => '',
  } as unknown as SetNameParts)
  const answered = async (): Promise<{ readonly status: number; readonly body: string }> => {
    let answer = { status: 0, body: '' }
    const { record, ...rest } = order
    const request = {
      method: 'PUT',
      path: '/ar-io/names/docs',
      header: (name: string) => headers[name],
      body: async () => Buffer.from(JSON.stringify({ ...record, ...rest })),
    }
    const reply = { end: ({ status }: { status: number }, body = '') => (answer = { status, body }) }
    await route.handle(request as never, reply as never, '', undefined as never)
    return answer
  }
  t.match(await answered(), { status: 503, body: /the disk is full/ })
  failure = new Error('a bug')
  await t.rejects(answered(), { message: 'a bug' })
})
