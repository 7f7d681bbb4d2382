/** What uploads cost: from the payment service, where this browser reaches it, else of the upload service alone. */
import {
  ClientError,
  creditsPageOf,
  creditsText,
  dollarsText,
  quoteUploads,
  SluiceClient,
  webStore,
} from 'sluice/client'
import { newKey, signerOfText } from './keys.js'
import { byId } from './view.js'

/** The address of the payment service, for browsers; undefined where nobody says. */
const paymentUrl = byId('drop').dataset.payment

/** What the upload service itself says that items of these sizes cost. */
function ownPrices(bytes) {
  return Promise.all(
    bytes.map(async (count) => {
      const answer = await fetch(`/v1/price/${count}`)
      const winc = await answer.text()
      if (!answer.ok) throw new Error(winc)
      return { winc }
    }),
  )
}

/** Prices in credits are known to the upload service, too, where this browser reaches no payment service. */
class PageClient extends SluiceClient {
  async getUploadCosts({ bytes }) {
    if (paymentUrl === undefined) return ownPrices(bytes)
    try {
      return await super.getUploadCosts({ bytes })
    } catch (error) {
      if (error instanceof ClientError && error.code === 'unavailable') return ownPrices(bytes)
      throw error
    }
  }
}

/** The client of this page. `signer`: undefined asks as somebody new. */
export async function clientOf(gateway, signer) {
  return new PageClient({
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
  return `At most ${creditsText(winc)}${usd === undefined ? '' : ` (${dollarsText(usd)})`}, of the key below.`
}

/** Where credits are bought for a wallet; undefined where nobody says. */
export async function placeToBuy(client, address) {
  if (paymentUrl === undefined) return undefined
  try {
    return await creditsPageOf(client, address)
  } catch (error) {
    if (error instanceof ClientError) return undefined
    throw error
  }
}
