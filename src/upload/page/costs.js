/** What uploads cost: asked of the payment service, where this browser reaches it, else of the upload service alone. */
import { ClientError, creditsPageOf, dollarsText, quoteUploads, SluiceClient, webStore } from 'sluice/client'
import { newKey, signerOfText } from './keys.js'
import { byId, credits } from './view.js'

/** A client without an address of a payment service: prices in credits are known to the upload service, too. */
class UploadServiceClient extends SluiceClient {
  getUploadCosts({ bytes }) {
    return Promise.all(
      bytes.map(async (count) => {
        const answer = await fetch(`/v1/price/${count}`)
        const winc = await answer.text()
        if (!answer.ok) throw new Error(winc)
        return { winc }
      }),
    )
  }
}

/** The client of this page. `signer`: undefined asks as somebody new. */
export async function clientOf(gateway, signer) {
  const paymentUrl = byId('drop').dataset.payment
  const Client = paymentUrl === undefined ? UploadServiceClient : SluiceClient
  return new Client({
    uploadUrl: location.origin,
    paymentUrl: paymentUrl ?? location.origin,
    gatewayUrls: [gateway],
    signer: signer ?? (await signerOfText(newKey())),
    resume: webStore(localStorage),
  })
}

/** Bytes that an item has besides its payload, at most, with the tags of this page. */
const headerBytes = 1400
/** Bytes of a manifest for each of its files, besides the path. */
const manifestRowBytes = 80

/** The most that these files cost, and a manifest where they are a folder: winc, and dollars where they are known. */
export function costOf(client, files, isFolder) {
  const sizes = files.map(({ file }) => file.size + headerBytes)
  const rows = files.reduce((sum, { path }) => sum + path.length * 3 + manifestRowBytes, headerBytes)
  return quoteUploads(client, isFolder ? [...sizes, rows] : sizes)
}

export function costText({ winc, usd }) {
  if (winc === 0n) return 'Free.'
  return `At most ${credits(winc)}${usd === undefined ? '' : ` (${dollarsText(usd)})`}, of the key below.`
}

/** Where credits are bought for a wallet; undefined where nobody says. */
export async function placeToBuy(client, address) {
  if (byId('drop').dataset.payment === undefined) return undefined
  try {
    return await creditsPageOf(client, address)
  } catch (error) {
    if (error instanceof ClientError) return undefined
    throw error
  }
}
