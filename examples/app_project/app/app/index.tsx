export default function Home() {
  return process.env.VENDOR_PUBLIC_API_URL;
}
