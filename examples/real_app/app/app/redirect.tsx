import { Redirect } from "vendor-router";

export default function SignedIn() {
  return <Redirect href="/" />;
}
