/** Who has signed a request, and which signatures are none of a request. */
import t from 'tap'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { itemMessage } from '../../src/proof/item-verifier.js'
import {
  ed25519Signer,
  ethereumSigner,
  type ItemSigner,
  signItem,
  solanaSigner,
} from '../../src/proof/sign.js'
import { requestSigner } from '../../src/proof/signed-request.js'

const seed = Buffer.alloc(32, 5)

function headersOf(
  { signatureType, owner }: Pick<ItemSigner, 'signatureType' | 'owner'>,
  nonce: string,
  signature: Uint8Array,
): (name: string) => string | undefined {
  const headers = new Map([
    ['x-nonce', nonce],
    ['x-signature', Buffer.from(signature).toString('base64url')],
    ['x-public-key', Buffer.from(owner).toString('base64url')],
    ['x-signature-type', String(signatureType)],
  ])
  return (name) => headers.get(name)
}

t.test('a nonce is signed by keys of each network', async (t) => {
  for (const signer of [ed25519Signer(seed), ethereumSigner(seed), solanaSigner(seed)]) {
    const signed = headersOf(signer, 'one nonce', signer.sign(Buffer.from('one nonce')))
    t.equal(requestSigner(signed)?.nonce, 'one nonce', `type ${signer.signatureType}`)
    t.equal(requestSigner(signed, 'bound'), undefined, 'and not for something else')
  }
})

t.test('the signature of an item, which everybody can read, signs no request of its owner', async (t) => {
  const payload = Buffer.from('for all to see')
  for (const signer of [ed25519Signer(seed), solanaSigner(seed)]) {
    const header = parseItemHeader(signItem(signer, {}, payload))
    if (header === 'more' || isRefusal(header)) throw new Error('no item')
    const text = Buffer.from(itemMessage(header, payload)).toString('hex')
    for (const signatureType of [2, 4]) {
      const forged = { signatureType, owner: signer.owner }
      t.equal(requestSigner(headersOf(forged, text, header.signature)), undefined)
      const [bound, nonce] = [text.slice(0, 40), text.slice(40)]
      t.equal(requestSigner(headersOf(forged, nonce, header.signature), bound), undefined)
    }
  }
})
