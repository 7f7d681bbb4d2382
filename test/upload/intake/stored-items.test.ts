import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { ItemStore } from '../../../src/upload/intake/store-item.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import type { StorableItem } from '../../../src/upload/stored/stored-groups.js'
import { eventually } from '../../eventually.js'
import { headerOf } from '../../signed-item.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 3))

function signed(text: string): { readonly id: string; readonly bytes: Buffer } {
  const bytes = Buffer.from(signItem(signer, {}, Buffer.from(text)))
  const header = headerOf(bytes)
  return { id: header.id, bytes }
}

/** A store that answers when it is told to. */
class ScriptedStore implements ItemStore {
  refusal: Refusal | undefined
  readonly kept: StorableItem[] = []
  answer: (outcome: string | undefined | Refusal) => void = () => undefined
  readonly holds = async (): Promise<boolean> => true

  put(item: StorableItem): Promise<string | undefined | Refusal> {
    this.kept.push(item)
    return new Promise((resolve) => {
      this.answer = resolve
    })
  }
}

const post = (bytes: Buffer) =>
  requestOf('POST', '/tx', { headers: { 'content-length': String(bytes.length) }, pieces: [bytes] })

t.test('a receipt leaves when the store has the item', async (t) => {
  const store = new ScriptedStore()
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { store })
  const { id, bytes } = signed('one')
  let isAnswered = false
  const answer = answered(rig, '/tx', post(bytes)).then((one) => {
    isAnswered = true
    return one
  })
  await eventually('it is put', () => store.kept.length === 1)
  await pause(50)
  t.equal(isAnswered, false)
  t.equal(rig.uploads.find(id as never), undefined, 'it is not accepted yet')
  const [item] = store.kept
  t.match(item, { id, sizeBytes: bytes.length })
  t.match(JSON.parse(Buffer.from(item?.meta ?? []).toString()), {
    id,
    winc: '0',
    free: { bytes: bytes.length },
  })
  store.answer('some group')
  t.equal((await answer).status, 200)
  t.equal(rig.uploads.find(id as never)?.stored, 'some group')
  await eventually('it is written down', () => rig.uploads.pending.count === 0)
  t.ok(rig.uploads.stored.has('some group'))
})

t.test('where the store does not take it nothing is charged, and the reason is said', async (t) => {
  const store = new ScriptedStore()
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 2000, walletBytes: 1e9, rangeBytes: 1e9, exemptWallets: [] }
  const rig = await uploadRig(t, environment, { store, free, isRich: true })
  const refusal = refuse('busy', 'self', 'the object store did not answer in time')
  for (const text of ['free', 'paid '.repeat(1000)]) {
    const { id, bytes } = signed(text)
    const range = rig.pools.leftOfRange('198.51.100.7')
    const before = store.kept.length
    const answer = answered(rig, '/tx', post(bytes))
    await eventually('it is put', () => store.kept.length > before)
    store.answer(refusal)
    t.match(await answer, { status: 503, text: /object store did not answer/, lines: /Retry-After/ })
    t.equal(rig.pools.leftOfRange('198.51.100.7'), range, 'free bytes are given back')
    t.equal(rig.uploads.find(id as never), undefined)
  }
  t.same(
    rig.questions.filter((word) => word === 'reserve' || word === 'withdraw' || word === 'settle'),
    ['reserve', 'withdraw'],
  )
  store.refusal = refuse('busy', 'self', 'the object store takes nothing (full)')
  const questions = rig.questions.length
  const { bytes } = signed('paid again '.repeat(1000))
  t.match(await answered(rig, '/tx', post(bytes)), { status: 503, text: /full/ })
  t.equal(rig.questions.length, questions, 'nobody is asked for money')
  const health = await answered(rig, '/healthcheck', requestOf('GET', '/healthcheck')).catch(() => undefined)
  if (health !== undefined) t.match(JSON.stringify(health.json), /full/)
})
